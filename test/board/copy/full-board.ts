/** A board with everything that a board can have, and what must be the same on its copy. */
import type { StoredJob } from '../../../src/board/contract/index.ts'
import { type JobBoard, schedule } from '../../../src/board/index.ts'
import type { BoardSide } from '../../../src/board/internal.ts'
import { parseReference } from '../../../src/core/job-names.ts'

/** Fills a board with everything that one can have, and pauses it. */
export async function fill(board: JobBoard): Promise<void> {
  await board.limits.set('tenant/*', { concurrency: 2, rate: { limit: 10, per: '1h' } })
  await board.limits.stop('tenant/9', { reason: 'unpaid' })
  await board.schedules.put(schedule('nightly', { cron: '0 3 * * *' }, 'report', {}))
  const open = await board.batch({ name: 'open', meta: { who: 'ada' }, onDone: { flow: 'report', store: {} } })
  const ended = await board.batch({ name: 'ended', onFailed: { flow: 'report', store: {} } })
  // A job that is done, one that fails for the last time, one that rests after its first run.
  await ended.post('flow', {}, { name: 'done' })
  await ended.post('flow', {}, { name: 'failed', key: 'the key', maxAttempts: 1 })
  await ended.post('flow', {}, { name: 'purged', maxAttempts: 1 })
  await ended.seal()
  await board.post(
    'flow',
    { big: 'x'.repeat(10_000) },
    { name: 'ran', limits: ['tenant/1'], backOff: { first: '1h', max: '1h' } },
  )
  await board.post('flow', {}, { name: 'cancelled' })
  for (const name of ['done', 'failed', 'purged', 'ran', 'cancelled']) {
    const [claim] = await board.claimNext({ accept: (posting) => posting.name === name })
    if (name === 'done') await claim.consume()
    else if (name === 'cancelled') await claim.abandon()
    else if (name === 'ran') await claim.abandon({ failed: true, reason: 'not yet', delay: '1h' })
    else await claim.trash({ reason: `${name} for good` })
  }
  for await (const entry of board.trashed()) if (entry.name === 'purged') await board.purge(entry)
  await board.pause()
  for await (const job of board.jobs())
    if (job.details.flow === 'report' || job.name === 'cancelled') await board.cancel(job)
  const first = await board.post('flow', {}, { name: 'first', priority: 'LOW', key: { name: 'the key', for: '1d' } })
  await board.post('flow', {}, { name: 'second', priority: 'HIGH', after: [{ uuid: first.ref, on: 'settled' }] })
  await board.post(
    'flow',
    {},
    { name: 'later', delay: '1h', expiresAfter: '2h', resources: { exclusive: ['a'], shared: ['b'] } },
  )
  await open.post('flow', {}, { name: 'member', size: 'large', deadline: '1m', onOwnerLost: 'fail' })
  await open.seal()
}

/** Everything of a board that must be the same on a copy. */
export async function picture({ board, backend }: BoardSide): Promise<object> {
  const jobs: object[] = []
  for await (const job of board.jobs({ ensureFresh: true })) jobs.push(await describe(job.ref, backend))
  const trash: object[] = []
  for await (const { posting, who, at, reason, failure } of backend.trash.list())
    trash.push({ posting, who, at, reason, failure })
  const batches: object[] = []
  for (const { uuid, bytes, ...numbers } of await backend.batches.list({ limit: 100 }))
    batches.push({ uuid, bytes: Buffer.from(bytes).toString('hex'), ...numbers })
  const history = await backend.history.newest({ limit: 100 })
  const uses = (await backend.limits.use()).map(({ key }) => key)
  return { jobs, trash, batches, history, uses }
}

/** @throws Error for a job that is gone or unreadable */
async function describe(ref: string, backend: BoardSide['backend']): Promise<object> {
  const { id = '' } = parseReference(ref)
  const [job] = await backend.jobs.read([id])
  if (job && 'posting' in job) return { ...toJob(job), cancellation: await backend.signals.cancellation(id) }
  throw new Error(`${ref} cannot be read`)
}

/** What of a posting stays, with whether it rests, has a window, and expires: how long depends on when it was copied. */
function toJob({ posting, waits }: StoredJob): object {
  const { delay = 0, keyFor = 0, expiresAfter = 0, ...rest } = posting
  return { ...rest, waits, rests: delay > 0, hasWindow: keyFor > 0, expires: expiresAfter > 0 }
}
