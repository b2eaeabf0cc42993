/** What is wrong with a Redis: it must not drop keys, and what it was told should outlive it. */
import { type RedisFacts, redisFacts } from '../../board/index.ts'
import { clockFinding, error, type Finding, ok, warning } from './finding.ts'

/** Of its memory, from where on posts may soon be refused. */
const NEARLY_ALL = 0.9
const MIB = 1_024 * 1_024

export async function examineRedis(uri: string, { timeout }: { timeout: number }): Promise<Finding[]> {
  const facts = await redisFacts(uri, { signal: AbortSignal.timeout(timeout) })
  const { version, role, now, asked } = facts
  const server = `Redis ${version}`
  if (role !== 'master')
    return [
      error('server', `${server} is a replica, which takes no writes`, 'name the master, or use redis+sentinel://'),
    ]
  const [before, after] = asked
  return [ok('server', server), clockFinding([now - after, now - before]), memoryFinding(facts), diskFinding(facts)]
}

function memoryFinding({ eviction, usedMemory, mostMemory }: RedisFacts): Finding {
  const text = `${Math.ceil(usedMemory / MIB)} MiB are used`
  if (mostMemory === 0) return ok('memory', `${text}, without a limit`)
  const limited = `${text} of ${Math.floor(mostMemory / MIB)}`
  if (eviction !== 'noeviction')
    return error(
      'memory',
      `${limited}, and when it is full keys are dropped (${eviction})`,
      'set maxmemory-policy noeviction',
    )
  if (usedMemory > mostMemory * NEARLY_ALL)
    return warning('memory', limited, 'raise maxmemory: when it is full nothing can be posted')
  return ok('memory', limited)
}

function diskFinding({ appends }: RedisFacts): Finding {
  if (appends) return ok('disk', 'what it is told is appended to a file')
  const text = 'what it was told since its last snapshot, if it makes any, is gone when it dies'
  return warning('disk', text, 'set appendonly yes, unless the jobs can be posted again')
}
