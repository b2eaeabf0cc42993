/**
 * An owner of limited jobs, in a process of its own. It writes down when the servers have granted each job, and when its work begins and ends
 * here.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { postgresBackend } from '../../../src/board/backends/postgres/index.ts'
import { redisBackend } from '../../../src/board/backends/redis/index.ts'
import { zooKeeperBackend } from '../../../src/board/backends/zookeeper/index.ts'
import type { Backend } from '../../../src/board/contract/index.ts'
import type { Claim } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { retry } from '../../../src/core/async/retry.ts'
import { NotConnected } from '../../../src/core/errors.ts'
import { parseReference } from '../../../src/core/job-names.ts'
import { parseUri } from '../../../src/core/uri.ts'

/** A process that was stopped, or had no processor for some time, has lost its connection: it connects again. */
const LOST_CONNECTION = {
  ...{ firstPauseMs: 50, maxPauseMs: 500 },
  isRetryable: (error: unknown) => error instanceof NotConnected && !stop.signal.aborted,
}
const stop = new AbortController()

const [uri = '', file = ''] = process.argv.slice(2)

// One short line is appended as a whole: all owners share the file.
const note = (what: string, uuid: string, keys: string, at = Date.now()) =>
  appendFileSync(file, `${what} ${at} ${process.pid} ${uuid} ${keys}\n`)

async function openBackend(): Promise<Backend> {
  const parsed = parseUri(uri, 'board')
  if (parsed.scheme === 'postgres') return postgresBackend(parsed, { who: `owner ${process.pid}` })
  if (parsed.scheme === 'redis') return redisBackend(parsed, {})
  return zooKeeperBackend(parsed, {})
}

/** Returns the time of the servers at which the job was claimed: a claimed job is not written again until its claim ends. */
async function grantTime(claim: Claim): Promise<number | undefined> {
  const read = () => backend.jobs.read([parseReference(claim.job.ref).id ?? ''])
  const [stored] = await retry(read, LOST_CONNECTION)
  return stored && 'writtenAt' in stored && isHeld(claim) ? stored.writtenAt : undefined
}

function isHeld(claim: Claim): boolean {
  try {
    claim.assertHeld()
    return true
  } catch {
    return false
  }
}

const backend = await openBackend()
const board = new JobBoard(backend, {})
await boardInternals(board).open()
process.once('SIGTERM', () => stop.abort())
console.log('ready')
try {
  while (!stop.signal.aborted) {
    const claims = await retry(() => board.claimNext({ max: 3, signal: stop.signal }), LOST_CONNECTION)
    await Promise.all(
      claims.map(async (claim) => {
        const keys = String(claim.job.details['keys'])
        // This process may have been stopped since the claim.
        if (!isHeld(claim)) return
        const grantedAt = await grantTime(claim)
        if (grantedAt === undefined || !isHeld(claim)) return
        note('granted', claim.job.uuid, keys, grantedAt)
        note('begin', claim.job.uuid, keys)
        await sleep(5 + Math.random() * 30)
        // A lost claim is another owner's: its work ended when this owner could know.
        note('end', claim.job.uuid, keys)
        await claim.consume().catch(() => undefined)
      }),
    )
  }
} catch (error) {
  if (!stop.signal.aborted) console.log(`failed ${String(error).replaceAll('\n', ' ')}`)
} finally {
  await board.close()
}
