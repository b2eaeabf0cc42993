/** Every operation that changes a board, each made ready so that it is one step; and what has to be so when it was done, once. */
import { expect } from 'vitest'
import type { Batch, Claim, Job, JobBoard } from '../../../../src/board/index.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { checkWritten, writeOn } from '../../records.ts'
import type { ProxiedRedisBoard } from './proxied-board.ts'

export interface Operation {
  readonly name: string
  /** What is named in the error when nobody knows what became of it. */
  readonly says: RegExp
  ready(setup: ProxiedRedisBoard): Promise<() => Promise<unknown>>
  check(setup: ProxiedRedisBoard, result: unknown): Promise<void>
}

export async function claimOn(board: JobBoard): Promise<Claim> {
  return board.claim(await board.post('flow', {}, { name: 'job', key: 'one', resources: { exclusive: ['disk'] } }))
}

async function trashedOn(board: JobBoard) {
  await (await claimOn(board)).trash({ reason: 'why' })
  const [trashed] = await all(board.trashed())
  if (!trashed) throw new Error('it is in the trash')
  return trashed
}

/** Nothing of the job is left but for what is named: everything that it held is free. */
async function leaves(setup: ProxiedRedisBoard, left: Partial<Record<'jobs' | 'trash', number>> = {}): Promise<void> {
  const { place } = setup
  expect(await place.jobIds()).toHaveLength(left.jobs ?? 0)
  expect(await place.trashIds()).toHaveLength(left.trash ?? 0)
  for (const key of ['held', 'granted', 'exclusive', 'shared', 'cancels', 'waits', 'dependents', 'ending', 'members'])
    expect(await place.observer.exists(place.key(key)), key).toBe(0)
}

const ENDED = { flow: 'flow', name: 'ended' }

/** Claims the only job of a sealed batch, whose callbacks have the name `ended`. */
async function lastOfBatch(board: JobBoard): Promise<Claim> {
  const batch = await board.batch({ name: 'import', onDone: ENDED, onFailed: ENDED })
  const job = await batch.post('flow', {}, { name: 'job' })
  await batch.seal()
  return board.claim(job)
}

/** Consumes the callback of the only batch, which was posted once. */
async function checkEnded(
  { board, other }: ProxiedRedisBoard,
  counts: Readonly<Record<string, number>>,
): Promise<void> {
  const [batch, ...others] = await other.batches()
  expect([batch, others]).toMatchObject([{ open: 0, generation: 1, endedAt: expect.any(Date), ...counts }, []])
  expect(await namesOn(board)).toEqual(['ended'])
  const claim = await claimed(other, 'ended')
  expect(claim.job.details['endedBatch']).toMatchObject({ uuid: batch?.uuid, ...counts })
  await claim.consume()
}

export const OPERATIONS: readonly Operation[] = [
  {
    name: 'post',
    says: /^post of job .* \(job\)/,
    ready:
      async ({ board }) =>
      () =>
        board.post('flow', { n: 1 }, { name: 'job' }),
    check: async (setup, result) => {
      const job = result as Job
      expect(await setup.place.jobIds()).toHaveLength(1)
      expect(job).toMatchObject({ name: 'job', state: 'UNCLAIMED' })
      expect((await setup.other.find(job.uuid)).uuid).toBe(job.uuid)
      const claim = await setup.board.claim(job)
      expect(claim.run).toBe(1)
      await claim.consume()
      expect(job.state).toBe('COMPLETE')
      await leaves(setup)
    },
  },
  {
    name: 'write of a record with a post',
    says: /^change of counter a/,
    ready: ({ board }) => writeOn(board),
    check: async (setup, result) => {
      expect(await setup.place.jobIds()).toHaveLength(1)
      await checkWritten(setup.board, result)
    },
  },
  {
    name: 'post with a key',
    says: /^post of job .* \(job\)/,
    ready:
      async ({ board }) =>
      () =>
        board.post('flow', {}, { name: 'job', key: 'one' }),
    check: async (setup, result) => {
      expect(result).toMatchObject({ created: true })
      expect(await setup.other.post('flow', {}, { key: 'one' })).toMatchObject({ created: false })
      await (await setup.board.claimNext())[0].consume()
      await leaves(setup)
    },
  },
  {
    name: 'claim',
    says: /^claim of job .* \(job\)/,
    ready: async ({ board }) => {
      const job = await board.post('flow', {}, { name: 'job', resources: { shared: ['disk'] } })
      return () => board.claim(job)
    },
    check: async (setup, result) => {
      const claim = result as Claim
      expect(claim).toMatchObject({ who: 'board', run: 1 })
      expect(claim.lost.aborted).toBe(false)
      expect(await setup.other.findOwner(await setup.other.find(claim.job.uuid))).toBe('board')
      expect(await setup.place.observer.hgetall(setup.place.key('shared'))).toMatchObject({ '["disk"]': '1' })
      await claim.consume()
      await leaves(setup)
    },
  },
  {
    name: 'consume',
    says: /^consume of job .* \(job\)/,
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.consume()
    },
    check: async (setup) => {
      expect(await namesOn(setup.board)).toEqual([])
      await leaves(setup)
    },
  },
  {
    name: 'post after another job',
    says: /^post of job .* \(job\)/,
    ready: async ({ board }) => {
      const first = await board.post('flow', {}, { name: 'first' })
      return () => board.post('flow', {}, { name: 'job', after: [first] })
    },
    check: async (setup, result) => {
      expect(await setup.place.observer.hlen(setup.place.key('waits'))).toBe(1)
      await (await claimed(setup.other, 'first')).consume()
      await (await setup.board.claim(result as Job)).consume()
      await leaves(setup)
    },
  },
  {
    name: 'consume of a job on which another one depends',
    says: /^consume of job .* \(job\)/,
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      await board.post('flow', {}, { name: 'after', after: [claim.job] })
      return () => claim.consume()
    },
    check: async (setup) => {
      await (await claimed(setup.other, 'after')).consume()
      expect((await setup.board.history()).map(({ name }) => name)).toEqual(['after', 'job'])
      await leaves(setup)
    },
  },
  {
    name: 'trash of a job on which another one depends',
    says: /^trash of job .* \(job\)/,
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      const after = await board.post('flow', {}, { name: 'after', after: [claim.job] })
      return async () => {
        await claim.trash({ reason: 'why' })
        return after
      }
    },
    check: async (setup, result) => {
      // No process claims here: the repeated answer names the doomed job to the process that trashed the other job.
      expect(await (result as Job).wait()).toBe('TRASHED')
      expect((await setup.board.history()).map(({ name }) => name)).toEqual(['after', 'job'])
      await leaves(setup, { trash: 2 })
    },
  },
  {
    name: 'creation of a batch',
    says: /^creation of batch .* \(import\)/,
    ready:
      async ({ board }) =>
      () =>
        board.batch({ name: 'import' }),
    check: async (setup, result) => {
      expect(await setup.board.batches()).toHaveLength(1)
      expect(await (await setup.other.findBatch((result as Batch).uuid)).seal()).toMatchObject({ state: 'done' })
    },
  },
  {
    name: 'post to a batch',
    says: /^post of job .* \(job\)/,
    ready: async ({ board }) => {
      const batch = await board.batch({ name: 'import' })
      return () => batch.post('flow', {}, { name: 'job' })
    },
    check: async (setup, result) => {
      const { batch } = result as Job
      const counting = await setup.other.findBatch(batch ?? '')
      expect(await counting.seal()).toMatchObject({ total: 1, open: 1, state: 'running' })
      await (await setup.board.claim(result as Job)).consume()
      expect(await counting.progress()).toMatchObject({ total: 1, done: 1, state: 'done' })
      await leaves(setup)
    },
  },
  {
    name: 'consume of the last job of a batch',
    says: /^consume of job .* \(job\)/,
    ready: async ({ board }) => {
      const claim = await lastOfBatch(board)
      return () => claim.consume()
    },
    check: async (setup) => {
      await checkEnded(setup, { total: 1, done: 1, failed: 0 })
      await leaves(setup)
    },
  },
  {
    name: 'trash of the last job of a batch',
    says: /^trash of job .* \(job\)/,
    ready: async ({ board }) => {
      const claim = await lastOfBatch(board)
      return () => claim.trash({ reason: 'why' })
    },
    check: async (setup) => {
      await checkEnded(setup, { total: 1, done: 0, failed: 1 })
      await leaves(setup, { trash: 1 })
    },
  },
  {
    name: 'seal of a batch',
    says: /^seal of batch/,
    ready: async ({ board }) => {
      const batch = await board.batch({ name: 'import', onDone: ENDED })
      return () => batch.seal()
    },
    check: (setup) => checkEnded(setup, { total: 0, done: 0, failed: 0 }),
  },
  {
    name: 'restore of a job of a batch',
    says: /^restore of job .* \(job\)/,
    ready: async ({ board }) => {
      await (await lastOfBatch(board)).trash({ reason: 'why' })
      await (await claimed(board, 'ended')).consume()
      const [trashed] = await all(board.trashed())
      return async () => trashed && board.restore(trashed)
    },
    check: async (setup) => {
      expect((await setup.other.batches())[0]).toMatchObject({ open: 1, failed: 0, generation: 2 })
      await (await claimed(setup.other, 'job')).consume()
      await checkEnded(setup, { total: 1, done: 1, failed: 0, generation: 2 })
      await leaves(setup)
    },
  },
  {
    name: 'abandon',
    says: /^abandon of job .* \(job\)/,
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.abandon({ reason: 'tried' })
    },
    check: async (setup) => {
      expect(await namesOn(setup.board, { onlyUnclaimed: true })).toEqual(['job'])
      await leaves(setup, { jobs: 1 })
      const [claim] = await setup.board.claimNext()
      expect(claim.run).toBe(2)
      expect(claim.job.attempts).toMatchObject([{ ended: 'returned', reason: 'tried' }, { who: 'board' }])
      await claim.consume()
    },
  },
  {
    name: 'trash',
    says: /^trash of job .* \(job\)/,
    ready: async ({ board }) => {
      const claim = await claimOn(board)
      return () => claim.trash({ reason: 'why' })
    },
    check: async (setup) => {
      expect(await namesOn(setup.board)).toEqual([])
      await leaves(setup, { trash: 1 })
      expect((await all(setup.board.trashed())).map(({ reason }) => reason)).toEqual(['why'])
    },
  },
  {
    name: 'cancel of a job that was never run',
    says: /^trash of job .* \(job\)/,
    ready: async ({ board }) => {
      const job = await board.post('flow', {}, { name: 'job' })
      return () => board.cancel(job, { reason: 'why' })
    },
    check: async (setup) => {
      await leaves(setup, { trash: 1 })
      expect((await all(setup.board.trashed())).map(({ reason }) => reason)).toEqual(['cancelled by board: why'])
    },
  },
  {
    name: 'cancel of a job that runs',
    says: /^cancel of job .*job/,
    ready: async ({ board, other }) => {
      const claim = await claimOn(other)
      const job = await board.find(claim.job.uuid)
      return () => board.cancel(job, { reason: 'why' })
    },
    check: async (setup) => {
      await refresh(setup.other)
      const { place } = setup
      expect(await place.observer.hlen(place.key('cancels'))).toBe(1)
      const [job] = await all(setup.other.jobs())
      if (job) await setup.other.trash(job, { reason: 'given up' })
      await leaves(setup, { trash: 1 })
    },
  },
  {
    name: 'pause',
    says: /^pause of redis:/,
    ready:
      async ({ board }) =>
      () =>
        board.pause(),
    check: async ({ board, other }) => {
      await refresh(other)
      expect([board.paused, other.paused]).toEqual([true, true])
      await board.resume()
    },
  },
  {
    name: 'restore',
    says: /^restore of job .* \(job\)/,
    ready: async ({ board }) => {
      const trashed = await trashedOn(board)
      return () => board.restore(trashed)
    },
    check: async (setup) => {
      expect(await namesOn(setup.board)).toEqual(['job'])
      await leaves(setup, { jobs: 1 })
    },
  },
  {
    name: 'purge',
    says: /^purge of job .* \(job\)/,
    ready: async ({ board }) => {
      const trashed = await trashedOn(board)
      return () => board.purge(trashed)
    },
    check: (setup) => leaves(setup),
  },
  {
    name: 'registering an entity',
    says: /^registering conductor one/,
    ready:
      async ({ board }) =>
      () =>
        board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} }),
    check: async ({ board, other }) => {
      expect(await other.entities('conductor')).toHaveLength(1)
      expect(await board.entities('conductor')).toHaveLength(1)
    },
  },
]
