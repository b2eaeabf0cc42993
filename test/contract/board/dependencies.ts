/** Jobs after jobs: a job is claimed when the jobs on which it depends have ended, however they end, and whoever ends them. */
import { describe, expect, test, vi } from 'vitest'
import { DoomedJobs } from '../../../src/board/claims/doomed-jobs.ts'
import { type Claim, type Job, type JobBoard, openBoard, type PostOptions } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { InvalidPosting, InvalidState, NotFound, Timeout, Unclaimable } from '../../../src/core/errors.ts'
import { newUuid } from '../../../src/core/uuid.ts'
import { rejectionOf, whenAborted } from '../../board/events.ts'
import { all, claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

/** Posts a job of this name after others. */
function postAfter(board: JobBoard, name: string, after: PostOptions['after'], options: PostOptions = {}) {
  return board.post('flow', {}, { ...options, name, ...(after ? { after } : {}) })
}

async function end(board: JobBoard, job: Job, how: 'consume' | 'trash'): Promise<void> {
  await (await board.claim(job))[how]()
}

async function claimNone(board: JobBoard): Promise<void> {
  expect(await rejectionOf(board.claimNext({ timeout: 0 }))).toBeInstanceOf(Timeout)
}

/** Consumes jobs until `count` are done; returns their names in order. */
async function consumeAll(board: JobBoard, count: number): Promise<string[]> {
  const names: string[] = []
  while (names.length < count) {
    const claims = await board.claimNext({ max: 50 })
    await Promise.all(claims.map((claim) => claim.consume()))
    names.push(...claims.map(({ job }) => job.name))
  }
  return names
}

/** Claims and consumes what can be claimed now; returns the names. */
async function consumeLeft(board: JobBoard): Promise<string[]> {
  const names: string[] = []
  while (true) {
    const [claim] = await board.claimNext({ timeout: 0 }).catch(() => [])
    if (!claim) return names
    names.push(claim.job.name)
    await claim.consume()
  }
}

export function dependenciesContract({ open, expire }: Place): void {
  test('a reference of another board, where a job has the id of one of this board, is refused', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {}, { name: 'job' })
    const stranger = job.ref.replace(job.uuid, newUuid())
    expect(stranger).not.toBe(job.ref)
    for (const board of [here, there]) {
      const refused = await rejectionOf(postAfter(board, 'after', [{ uuid: stranger, on: 'settled' }]))
      expect(refused).toMatchObject({ code: 'JOBBOARD_NOT_FOUND' })
    }
    await postAfter(there, 'after it', [job.ref])
    await end(here, job, 'consume')
    await postAfter(there, 'after its end', [job.ref])
    await postAfter(there, 'again', [job.ref])
    expect(await rejectionOf(postAfter(there, 'after', [stranger]))).toBeInstanceOf(NotFound)
    expect(await namesOn(there)).toEqual(['after it', 'after its end', 'again'])
  })

  test('a job of another board is refused, although it is done there', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await using elsewhere = await openBoard('memory:')
    const stranger = await elsewhere.post('flow', {}, { name: 'stranger' })
    for (const isDone of [false, true]) {
      if (isDone) await end(elsewhere, stranger, 'consume')
      expect(stranger.state).toBe(isDone ? 'COMPLETE' : 'UNCLAIMED')
      for (const board of [here, there]) {
        const refused = await rejectionOf(postAfter(board, 'after', [stranger]))
        expect(refused).toMatchObject({ code: 'JOBBOARD_NOT_FOUND', message: expect.stringContaining(stranger.uuid) })
      }
    }
    const job = await here.post('flow', {}, { name: 'job' })
    await end(here, job, 'consume')
    for (const board of [here, there]) await postAfter(board, 'after', [job])
    expect(await namesOn(here)).toEqual(['after', 'after'])
  })

  test('a job is claimed when the other one is done, by whoever waits for jobs', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('flow', {}, { name: 'first' })
    const second = await postAfter(there, 'second', [first.uuid])
    expect(second.after).toEqual([{ uuid: first.uuid, on: 'done' }])
    expect(await namesOn(here)).toEqual(['first', 'second'])
    const claim = await here.claim(first)
    await claimNone(there)
    const next = there.claimNext()
    await claim.consume()
    const [got] = await next
    expect(got.job.uuid).toBe(second.uuid)
    await got.consume()
    expect(await here.countJobs()).toBe(0)
  })

  test('a job that waits is not claimed by its name, and says what it waits for', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('flow', {}, { name: 'first' })
    const second = await postAfter(here, 'second', [first])
    for (const board of [here, there]) {
      await refresh(board)
      const seen = await board.find(second.uuid)
      expect(await rejectionOf(board.claim(seen))).toBeInstanceOf(Unclaimable)
      const waiting = await board.waitingFor(seen)
      expect(waiting).toMatchObject({ kind: 'job', text: expect.stringContaining(`job ${first.uuid} (first)`) })
      expect(waiting?.kind === 'job' && waiting.jobs.map(({ uuid }) => uuid)).toEqual([first.uuid])
    }
    await end(there, first, 'consume')
    expect(await rejectionOf(end(there, first, 'consume'))).toBeInstanceOf(NotFound)
    await end(there, await there.find(second.uuid), 'consume')
  })

  test('jobs are named by uuid, reference or Job; twice counts once', async () => {
    const board = await open()
    const first = await board.post('flow', {}, { name: 'first' })
    const after = [first, first.uuid, first.ref, { uuid: first.uuid, on: 'done' as const }]
    const second = await postAfter(board, 'second', after)
    expect(second.after).toEqual([{ uuid: first.uuid, on: 'done' }])
    const other = await open()
    await claimed(other, 'first')
    await claimNone(other)
  })

  test('the end of an attempt is not the end of the job', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('flow', {}, { name: 'first' })
    await postAfter(here, 'second', [first])
    const claim = await there.claim(first)
    await claim.abandon({ failed: true, delay: '1h' })
    await claimNone(here)
    await here.claim(await postAfter(here, 'third', undefined)).then((other) => other.consume())
    await expire(there)
    await claimNone(here)
  })

  test.each(['consume', 'trash'] as const)('a job after many waits for all of them (%s)', async (how) => {
    const boards = await Promise.all([open(), open(), open()])
    const [board] = boards
    const firsts = await Promise.all(Array.from({ length: 12 }, (_, n) => postAfter(board, `first ${n}`, undefined)))
    const last = await postAfter(
      board,
      'last',
      firsts.map(({ uuid }) => ({ uuid, on: 'settled' as const })),
    )
    const claims = await Promise.all(
      firsts.map(async (first, n) => {
        const owner = boards[n % boards.length] ?? board
        return owner.claim(await owner.find(first.ref))
      }),
    )
    // Those that end last at the same time, on several boards.
    const [kept, ...others] = claims
    await Promise.all(others.map((claim) => claim[how]()))
    await claimNone(board)
    const next = board.claimNext()
    await kept?.[how]()
    expect((await next)[0].job.uuid).toBe(last.uuid)
  })

  test('of jobs that end at the same time, the last one frees the job after them, each time', async () => {
    const boards = await Promise.all([open(), open()])
    const [here, there] = boards
    for (let round = 0; round < 8; round++) {
      const pair = await Promise.all([postAfter(here, 'a', undefined), postAfter(there, 'b', undefined)])
      const claims = await Promise.all(
        boards.map(async (board, n) => board.claim(await board.find(pair[n]?.ref ?? ''))),
      )
      await postAfter(here, `after ${round}`, pair)
      const next = there.claimNext({ timeout: '20s' })
      await Promise.all(claims.map((claim) => claim.consume()))
      const [claim] = await next
      expect(claim.job.name).toBe(`after ${round}`)
      await claim.consume()
    }
  })

  test('a job that is posted while the other one ends is run once it has', async () => {
    const [here, there] = await Promise.all([open(), open()])
    for (let round = 0; round < 10; round++) {
      const first = await here.post('flow', {}, { name: 'first' })
      const claim = await there.claim(await there.find(first.ref))
      const [second] = await Promise.all([postAfter(here, `second ${round}`, [first.uuid]), claim.consume()])
      const got = await claimed(there, `second ${round}`)
      expect(got.job.uuid).toBe(second.uuid)
      await got.consume()
    }
  })

  test('a job that is done is known by the history of the board', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('flow', {}, { name: 'first' })
    await end(here, first, 'consume')
    await postAfter(there, 'second', [first.uuid])
    await postAfter(there, 'third', [first.ref])
    await postAfter(here, 'fourth', [first, { uuid: newUuid(), on: 'settled' }]).catch((error) => {
      expect(error).toBeInstanceOf(NotFound)
    })
    expect(await namesOn(here)).toEqual(['second', 'third'])
    expect(await consumeAll(there, 2)).toEqual(['second', 'third'])
  })

  describe('the other one goes to the trash', () => {
    test.each(['trash', 'cancel'] as const)(
      'jobs after it that never ran go there with it, and claimers get none of them (%s)',
      async (how) => {
        const [here, there] = await Promise.all([open(), open()])
        const first = await here.post('flow', {}, { name: 'first' })
        const second = await postAfter(here, 'second', [first])
        const third = await postAfter(here, 'third', [second])
        const next = rejectionOf(
          here.claimNext({ signal: AbortSignal.timeout(60_000), accept: ({ name }) => name !== 'first' }),
        )
        if (how === 'trash') await (await there.claim(first)).trash({ reason: 'it broke' })
        else await there.cancel(await there.find(first.uuid), { reason: 'not needed' })
        expect(await Promise.all([second.wait(), third.wait()])).toEqual(['TRASHED', 'TRASHED'])
        const reasons = (await all(here.trashed())).map(({ reason }) => reason)
        const why = how === 'trash' ? 'it broke' : expect.stringContaining('not needed')
        expect(reasons[0]).toEqual(how === 'trash' ? 'it broke' : why)
        expect(reasons[1]).toContain(`job ${first.uuid} (first), on which it depends, is in the trash: `)
        expect(reasons[2]).toContain(`job ${second.uuid} (second), on which it depends, is in the trash`)
        const ended = (await there.history()).map(({ name, outcome, runs }) => `${name} ${outcome} ${runs}`)
        expect(ended).toEqual(['third TRASHED 0', 'second TRASHED 0', `first TRASHED ${how === 'trash' ? 1 : 0}`])
        await here.close()
        expect(await next).toBeInstanceOf(InvalidState)
      },
    )

    test('the keys and the batch of jobs that never ran are free and done before the caller receives the answer', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const batch = await here.batch({ name: 'batch' })
      const first = await here.post('flow', {}, { name: 'first' })
      await postAfter(here, 'second', [first], { key: 'one', batch })
      const third = await postAfter(here, 'third', [first, { uuid: first.uuid }], { batch, delay: '1h' })
      await postAfter(here, 'fourth', [{ uuid: third.uuid, on: 'settled' }], { key: 'other' })
      await batch.seal()
      await end(there, await there.find(first.ref), 'trash')
      expect(await batch.progress()).toMatchObject({ state: 'failed', failed: 2, open: 0 })
      expect(await there.post('flow', {}, { name: 'again', key: 'one' })).toMatchObject({ created: true })
      const replacing = { key: { name: 'other', on: 'replace' } } as const
      expect(await there.post('flow', {}, { name: 'newer', ...replacing })).toMatchObject({ replaced: true })
      expect(await namesOn(there)).toEqual(['newer', 'again'])
    })

    test('jobs that never ran are not granted, and end by whoever claims or posts, if its owner dies before they have ended', async () => {
      const [here, there, worker] = await Promise.all([open(), open(), open()])
      const [first, other] = [await postAfter(here, 'first', undefined), await postAfter(here, 'other', undefined)]
      const doomed = await Promise.all(
        ['claimed', 'chosen', 'replaced', 'left'].map((name) => postAfter(here, name, [first, other], { key: name })),
      )
      const last = await postAfter(here, 'last', [doomed[3] ?? first])
      using _view = await worker.view()
      const dying = vi.spyOn(DoomedJobs.prototype, 'add').mockImplementation(() => undefined)
      await end(there, await there.find(first.ref), 'trash')
      dying.mockRestore()
      await end(there, await there.find(other.ref), 'consume')
      const [claimedOne] = doomed
      await refresh(worker)
      if (claimedOne)
        expect(await rejectionOf(worker.claim(await worker.find(claimedOne.ref)))).toBeInstanceOf(Unclaimable)
      const again = await there.post('flow', {}, { name: 'again', key: { name: 'replaced', on: 'replace' } })
      expect(again).toMatchObject({ created: true })
      const [claim] = await worker.claimNext()
      expect(claim.job.name).toBe('again')
      await rejectionOf(worker.claimNext({ timeout: 0, accept: () => false }))
      expect(await Promise.all([...doomed, last].map((job) => job.wait()))).toEqual(Array(5).fill('TRASHED'))
      await claim.consume()
      expect(await there.countJobs()).toBe(0)
    })

    test('of a claim, a cancel, a post and a restoration beside its end, none runs a job that never ran, and none is left', async () => {
      const boards = await Promise.all([open(), open(), open()])
      const [here, there, worker] = boards
      for (let round = 0; round < 6; round++) {
        const first = await here.post('flow', {}, { name: 'first' })
        const second = await postAfter(here, 'second', [first], { key: 'one' })
        const claim = await there.claim(await there.find(first.ref))
        const seen = await worker.find(second.ref)
        const raced = await Promise.allSettled([
          claim.trash(),
          worker.claim(seen),
          worker.cancel(seen),
          postAfter(here, 'third', [second.uuid]),
          here.post('flow', {}, { name: 'fourth', key: 'one' }),
        ])
        expect(raced[1].status).toBe('rejected')
        const trashed = (await all(there.trashed())).findLast(({ uuid }) => uuid === first.uuid)
        if (trashed) await there.restore(trashed)
        await second.wait({ timeout: '20s' })
        await refresh(worker)
        const ran = await consumeLeft(worker)
        expect(ran.filter((name) => name !== 'fourth')).toEqual(['first'])
      }
      expect(await here.countJobs()).toBe(0)
    })

    test('a thousand jobs that never ran, beside each other and in a chain, end with it', {
      timeout: 120_000,
    }, async () => {
      const [here, there] = await Promise.all([open(), open()])
      using _view = await here.view()
      const first = await here.post('flow', {}, { name: 'first' })
      const uuids = Array.from({ length: 10 }, () => newUuid())
      const results = await here.postMany([
        ...Array.from({ length: 1_010 }, () => ({ flow: 'flow', store: {}, name: 'beside', after: [first.uuid] })),
        ...uuids.map((uuid, n) => ({
          ...{ flow: 'flow', store: {}, name: 'chain', uuid },
          after: [uuids[n - 1] ?? first.uuid],
        })),
      ])
      expect(results.filter((result) => 'error' in result)).toEqual([])
      await end(there, await there.find(first.ref), 'trash')
      const ends = await Promise.all(results.map((result) => ('job' in result ? result.job.wait() : undefined)))
      expect(new Set(ends)).toEqual(new Set(['TRASHED']))
      expect(await boardInternals(there).countTrash()).toBe(1_021)
    })

    test('a job that is run in any case is run', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const [first, other] = [await postAfter(here, 'first', undefined), await postAfter(here, 'other', undefined)]
      await postAfter(here, 'second', [{ uuid: first.uuid, on: 'settled' }, other.uuid])
      await end(there, first, 'trash')
      await end(here, other, 'consume')
      const [claim] = await there.claimNext()
      expect(claim.job.name).toBe('second')
      expect(claim.cancelled.aborted).toBe(false)
      await claim.consume()
      await postAfter(here, 'third', [{ uuid: first.uuid, on: 'settled' }])
      expect(await consumeAll(there, 1)).toEqual(['third'])
    })

    test('a new job after it is refused until it is restored', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', {}, { name: 'first' })
      await postAfter(here, 'second', [first])
      await end(there, first, 'trash')
      for (const board of [here, there])
        expect(await rejectionOf(postAfter(board, 'third', [first.uuid]))).toBeInstanceOf(InvalidState)
      const [trashedFirst, trashedSecond] = await all(here.trashed())
      if (!trashedFirst || !trashedSecond) throw new Error('both are in the trash')
      expect(await rejectionOf(here.restore(trashedSecond))).toBeInstanceOf(InvalidState)
      expect(await namesOn(here)).toEqual([])
      await here.restore(trashedFirst)
      await there.restore(trashedSecond)
      await postAfter(there, 'third', [first.uuid])
      const [claim] = await there.claimNext()
      expect(claim.job.name).toBe('first')
      await claimNone(here)
      await claim.consume()
      expect((await consumeAll(here, 2)).sort()).toEqual(['second', 'third'])
    })
  })

  test('a job is restored with those that went to the trash because of it, or without those on which it depends', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('flow', {}, { name: 'first' })
    const second = await postAfter(here, 'second', [first])
    await postAfter(here, 'third', [second])
    await end(there, first, 'trash')
    const [trashed] = await all(there.trashed())
    if (!trashed) throw new Error('it is in the trash')
    const restored = await there.restore(trashed, { dependents: true })
    expect(restored.map(({ name }) => name)).toEqual(['first', 'second', 'third'])
    expect(await all(here.trashed())).toEqual([])
    const found = await here.find(second.uuid)
    await refresh(here)
    const { waitsFor, dependents } = await here.dependencies(found)
    expect([waitsFor.map(String), dependents.map(({ name }) => name)]).toEqual([[String(first)], ['third']])
    await end(there, await there.find(first.uuid), 'trash')
    const alone = (await all(here.trashed())).find(({ name }) => name === 'second')
    if (!alone) throw new Error('it is in the trash')
    expect(alone.after).toEqual([{ uuid: first.uuid, on: 'done' }])
    await here.restore(alone, { ignoreDependencies: true })
    await (await claimed(here, 'second')).trash()
    // It has run: what it did is reverted by its flow.
    for (const name of ['first', 'second'])
      for (const entry of await all(here.trashed())) if (entry.name === name) await here.restore(entry)
    await end(here, await here.find(first.uuid), 'trash')
    const revert = await claimed(there, 'second')
    await whenAborted(revert.cancelled)
    expect(await rejectionOf(revert.consume())).toMatchObject({ code: 'JOBBOARD_CANCELLED' })
    expect(await revert.perform(() => expect.unreachable())).toBe('trashed')
    expect(await rejectionOf(here.restore(alone, { dependents: 1 as never }))).toMatchObject({
      code: 'JOBBOARD_INVALID_ARGUMENT',
    })
  })

  test('a job that waits can be cancelled, and the end of the other one does nothing then', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('flow', {}, { name: 'first' })
    const second = await postAfter(here, 'second', [first])
    await there.cancel(await there.find(second.uuid))
    expect(await second.wait()).toBe('TRASHED')
    await end(there, first, 'consume')
    expect(await namesOn(here)).toEqual([])
    const [trashed] = await all(here.trashed())
    if (!trashed) throw new Error('it is in the trash')
    await here.restore(trashed)
    expect(await consumeAll(there, 1)).toEqual(['second'])
  })

  test('its key and its delay hold, too', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('flow', {}, { name: 'first' })
    const second = await postAfter(here, 'second', [first], { key: 'one' })
    expect(await postAfter(there, 'other', [first.uuid], { key: 'one' })).toMatchObject({
      created: false,
      uuid: second.uuid,
    })
    await postAfter(here, 'late', [first], { delay: '1h' })
    await end(there, first, 'consume')
    expect(await consumeAll(there, 1)).toEqual(['second'])
    await claimNone(there)
  })

  test('jobs of one call depend on earlier ones, also on ten thousand', { timeout: 60_000 }, async () => {
    const [here, there] = await Promise.all([open(), open()])
    const uuids = Array.from({ length: 300 }, () => newUuid())
    const [root = '', ...leaves] = uuids
    const last = newUuid()
    const results = await here.postMany([
      { flow: 'flow', store: {}, name: 'root', uuid: root },
      ...leaves.map((uuid) => ({ flow: 'flow', store: {}, name: 'leaf', uuid, after: [root] })),
      { flow: 'flow', store: {}, name: 'last', uuid: last, after: leaves },
    ])
    expect(results.filter((result) => 'error' in result)).toEqual([])
    const names = await consumeAll(there, 301)
    expect([names[0], names.at(-1)]).toEqual(['root', 'last'])
    expect(names.filter((name) => name === 'leaf')).toHaveLength(299)
  })

  test('jobs of one transaction depend on others that are on the board, or none is posted', async () => {
    const board = await open()
    const first = await board.post('flow', {}, { name: 'first' })
    const item = (name: string, after: string) => ({ flow: 'flow', store: {}, name, after: [after] })
    const posting = board.postMany([item('a', first.uuid), item('b', newUuid())], { atomic: true })
    expect(await rejectionOf(posting)).toBeInstanceOf(NotFound)
    expect(await namesOn(board)).toEqual(['first'])
    await board.postMany([item('a', first.uuid), item('b', first.uuid)], { atomic: true })
    expect((await consumeAll(board, 3))[0]).toBe('first')
  })

  test('a chain is run in its order', async () => {
    const boards = await Promise.all([open(), open()])
    let before: Job | undefined
    for (let n = 0; n < 12; n++)
      before = await postAfter(boards[n % 2] ?? boards[0], `${n}`, before ? [before] : undefined)
    const names: string[] = []
    while (names.length < 12) {
      const [claim]: [Claim, ...Claim[]] = await (boards[names.length % 2] ?? boards[0]).claimNext()
      names.push(claim.job.name)
      await claim.consume()
    }
    expect(names).toEqual(Array.from({ length: 12 }, (_, n) => `${n}`))
  })

  test('bad input is refused with one line, and nothing is posted', async () => {
    const board = await open()
    const own = newUuid()
    const there = await board.post('flow', {}, { name: 'there' })
    const wrong: unknown[] = ['x', [{ on: 'done' }], [7], ['no uuid'], [{ uuid: there.uuid, on: 'failed' }], [own]]
    const twice = [there.uuid, { uuid: there.uuid, on: 'settled' }]
    const many = Array.from({ length: 1_001 }, () => newUuid())
    for (const after of [...wrong, twice, many]) {
      const error = await rejectionOf(board.post('flow', {}, { uuid: own, after: after as string[] }))
      expect(error).toBeInstanceOf(InvalidPosting)
      expect(String(error)).toMatch(/after/)
      expect(String(error)).not.toContain('\n')
    }
    const error = await rejectionOf(board.post('flow', {}, { after: [newUuid()] }))
    expect(error).toBeInstanceOf(NotFound)
    expect(await namesOn(board)).toEqual(['there'])
  })
}
