/** The doctor's checks of a Redis: it must not evict keys, and its data should survive its end. */

import { type RedisServerInfo, redisServerInfo } from '../../board/internal.ts'
import { timeoutSignal } from '../../core/time.ts'
import { clockFinding, errorFinding, type Finding, okFinding, warningFinding } from './finding.ts'

/** The fraction of its memory from which on a finding warns that posts may be refused. */
const MEMORY_WARNING_FRACTION = 0.9
const BYTES_PER_MIB = 1_024 * 1_024

export async function examineRedis(uri: string, { timeout }: { timeout: number }): Promise<Finding[]> {
  const facts = await redisServerInfo(uri, { signal: timeoutSignal(timeout) })
  const { version, role, now, asked } = facts
  const server = `Redis ${version}`
  if (role !== 'master')
    return [
      errorFinding(
        'server',
        `${server} is a replica, which takes no writes`,
        'name the master, or use redis+sentinel://',
      ),
    ]
  const [before, after] = asked
  return [
    okFinding('server', server),
    clockFinding([now - after, now - before]),
    memoryFinding(facts),
    diskFinding(facts),
  ]
}

function memoryFinding({ eviction, usedMemory, mostMemory }: RedisServerInfo): Finding {
  const text = `${Math.ceil(usedMemory / BYTES_PER_MIB)} MiB are used`
  if (mostMemory === 0) return okFinding('memory', `${text}, without a limit`)
  const limited = `${text} of ${Math.floor(mostMemory / BYTES_PER_MIB)}`
  if (eviction !== 'noeviction')
    return errorFinding(
      'memory',
      `${limited}, and keys are evicted when it is full (${eviction})`,
      'set maxmemory-policy noeviction',
    )
  if (usedMemory > mostMemory * MEMORY_WARNING_FRACTION)
    return warningFinding('memory', limited, 'raise maxmemory: when it is full nothing can be posted')
  return okFinding('memory', limited)
}

function diskFinding({ appends }: RedisServerInfo): Finding {
  if (appends) return okFinding('disk', 'all writes are appended to a file')
  const text = 'writes since its last snapshot, if it makes any, are lost when it dies'
  return warningFinding('disk', text, 'set appendonly yes, unless the jobs can be posted again')
}
