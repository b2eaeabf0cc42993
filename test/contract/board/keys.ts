/** At most one job with a key is on the board, however often and by however many it is posted. */
import { describe, expect, test } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { InvalidPosting } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { all, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

/** Names that are no names of files, that look like others' names, that are too long for one. */
export const ODD_NAMES = [
  ...['/', '.', '..', 'a/b', 'a%2Fb', 'A', 'a', ' ', 'x', 's-job0000000000', '~', 'ünï\u0000code 💥'],
  ...['l'.repeat(1_024), `${'l'.repeat(1_023)}m`],
]

export function keysContract({ open, removeRaw }: Place): void {
  test('posting again resolves to the job that is there, wherever it stands, and posts nothing', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('flow', { n: 1 }, { key: 'nightly', name: 'first' })
    expect(first.created).toBe(true)
    const postedAgain = async (state: string) => {
      for (const board of [here, there]) {
        const again = await board.post('flow', { n: 2 }, { key: 'nightly', name: 'again' })
        expect(again).toMatchObject({ created: false, uuid: first.uuid, name: 'first', state })
        expect(again.details.store).toEqual({ n: 1 })
      }
    }
    await postedAgain('UNCLAIMED')
    const claim = await there.claim(first)
    await postedAgain('CLAIMED')
    await claim.abandon({ failed: true })
    await postedAgain('UNCLAIMED')
    expect(await namesOn(there)).toEqual(['first'])
    expect(await here.countJobs()).toBe(1)
  })

  test('a job that is posted without a key, or with another, is a job of its own', async () => {
    const board = await open()
    const posted = [{}, {}, { key: 'a' }, { key: 'b' }].map((options) => board.post('flow', {}, options))
    expect((await Promise.all(posted)).map(({ created }) => created)).toEqual([true, true, true, true])
    expect(await board.countJobs()).toBe(4)
  })

  test.each(['consume', 'trash'] as const)('a key is free again after %s', async (settle) => {
    const [here, there] = await Promise.all([open(), open()])
    const uuids = new Set<string>()
    for (const board of [here, there, here]) {
      const job = await board.post('flow', {}, { key: 'nightly' })
      expect(job.created).toBe(true)
      uuids.add(job.uuid)
      await (await there.claim(job))[settle]()
    }
    expect(uuids.size).toBe(3)
  })

  test('of posts of a key at the same time, by several boards, one makes the job', async () => {
    const boards = await Promise.all(Array.from({ length: 4 }, () => open()))
    for (let round = 0; round < 5; round++) {
      const asked = boards.flatMap((board) => [1, 2, 3].map(() => board.post('flow', {}, { key: `round ${round}` })))
      const jobs = await Promise.all(asked)
      expect(jobs.filter(({ created }) => created)).toHaveLength(1)
      expect(new Set(jobs.map(({ uuid }) => uuid)).size).toBe(1)
    }
    for (const board of boards) expect(await namesOn(board)).toHaveLength(5)
  })

  test('among boards that post and end jobs of one key all the time, there is never more than one', async () => {
    const boards = await Promise.all(Array.from({ length: 3 }, () => open()))
    const observer = await open()
    using _view = await observer.view()
    let most = 0
    const count = () => {
      most = Math.max(most, observer.jobCount ?? 0)
    }
    for (const event of ['posted', 'claimed', 'consumed'] as const) observer.on(event, count)
    const life = async (board: JobBoard, settle: 'consume' | 'trash') => {
      for (let round = 0; round < 15; round++) {
        const job = await board.post('flow', {}, { key: 'one' })
        count()
        const claim = await board.claim(job).catch(() => undefined)
        await claim?.[settle]()
      }
    }
    await Promise.all(boards.flatMap((board) => [life(board, 'consume'), life(board, 'trash')]))
    await refresh(observer)
    expect(most).toBe(1)
  })

  describe('whose job was removed by hand', () => {
    test('is taken over by the next post', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const lost = await here.post('flow', {}, { key: 'one', name: 'lost' })
      await refresh(there)
      await removeRaw(lost)
      const job = await there.post('flow', {}, { key: 'one', name: 'new' })
      expect(job).toMatchObject({ created: true, name: 'new' })
      const again = await here.post('flow', {}, { key: 'one', name: 'again' })
      expect(again).toMatchObject({ created: false, uuid: job.uuid })
      await (await here.claim(job)).consume()
      expect(await here.post('flow', {}, { key: 'one' })).toMatchObject({ created: true })
    })

    test('is taken over once, by however many at the same time', async () => {
      const boards = await Promise.all(Array.from({ length: 4 }, () => open()))
      const [first] = boards
      for (let round = 0; round < 3; round++) {
        const key = `round ${round}`
        const lost = await first?.post('flow', {}, { key })
        if (lost) await removeRaw(lost)
        const jobs = await Promise.all(boards.flatMap((board) => [1, 2].map(() => board.post('flow', {}, { key }))))
        expect(jobs.filter(({ created }) => created)).toHaveLength(1)
        expect(new Set(jobs.map(({ uuid }) => uuid)).size).toBe(1)
      }
      for (const board of boards) expect(await namesOn(board)).toHaveLength(3)
    })
  })

  test('may be any text but the empty one; those that look alike are kept apart', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const jobs = await Promise.all(ODD_NAMES.map((key) => here.post('flow', {}, { key })))
    expect(jobs.map(({ created }) => created)).toEqual(ODD_NAMES.map(() => true))
    const again = await Promise.all(ODD_NAMES.map((key) => there.post('flow', {}, { key })))
    expect(again.map(({ uuid, created }) => ({ uuid, created }))).toEqual(
      jobs.map(({ uuid }) => ({ uuid, created: false })),
    )
    for (const claim of await there.claimNext({ max: jobs.length })) await claim.consume()
    expect(await all(here.jobs({ ensureFresh: true }))).toEqual([])
    for (const key of ODD_NAMES) expect(await here.post('flow', {}, { key })).toMatchObject({ created: true })
  })

  test.each([['the empty text', ''] as const, ['a number', 7 as unknown as string] as const])(
    'that is %s is refused as InvalidPosting',
    async (_, key) => {
      const board = await open()
      expect(await rejectionOf(board.post('flow', {}, { key }))).toBeInstanceOf(InvalidPosting)
      expect(await board.countJobs()).toBe(0)
    },
  )
}
