/** A key with a window stays taken for a time after the post, by the board's clock, whatever becomes of its job. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { JobBoard, KeyOptions, PostedJob } from '../../../src/board/index.ts'
import { Duplicate, InvalidArgument, InvalidPosting } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { all, namesOn } from '../../board/jobs.ts'
import type { BoardBackend, Place } from '../board.ts'

const DAY_MS = 86_400_000
/** A window that no test outlasts. */
const LONG: KeyOptions = { name: 'import', for: '1h' }
/** A window that is over when the next answer comes, or soon after. */
const SHORT: KeyOptions = { name: 'import', for: 1 }

/** Posts until a job is created: until the window is over. */
async function postUntilCreated(board: JobBoard, key: KeyOptions): Promise<PostedJob> {
  while (true) {
    const job = await board.post('flow', {}, { key })
    if (job.created) return job
    expect(job.because).toBe('window')
  }
}

async function end(board: JobBoard, job: PostedJob, how: 'consume' | 'trash'): Promise<void> {
  await (await board.claim(job))[how]()
}

async function trashedOf(board: JobBoard, { uuid }: PostedJob) {
  const entry = (await all(board.trashed())).find((job) => job.uuid === uuid)
  if (!entry) throw new Error(`job ${uuid} is not in the trash`)
  return entry
}

export function keyWindowsContract(
  { open, removeRaw }: Place,
  { hasProcessClock, capabilities: { history } }: BoardBackend,
): void {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  describe('in the window, a post resolves to the job, which', () => {
    test('is on the board: the post says what it does there', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', { n: 1 }, { key: LONG, name: 'first' })
      expect(first).toMatchObject({ created: true, because: undefined, replaced: false, key: 'import' })
      expect(first.keyTakenUntil?.getTime()).toBe((first.postedAt?.getTime() ?? Number.NaN) + 3_600_000)
      const again = await there.post('flow', { n: 2 }, { key: LONG })
      expect(again).toMatchObject({ created: false, because: 'waiting', replaced: false, uuid: first.uuid })
      const claim = await there.claim(first)
      expect(await here.post('flow', {}, { key: 'import' })).toMatchObject({ created: false, because: 'running' })
      await claim.abandon({ failed: true })
      expect(await here.post('flow', {}, { key: LONG })).toMatchObject({ because: 'running', state: 'UNCLAIMED' })
    })

    test.each([
      ['is done', 'consume', 'COMPLETE'],
      ['is in the trash', 'trash', 'TRASHED'],
    ] as const)('%s', async (_, how, state) => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', { n: 1 }, { key: LONG, name: 'first' })
      await end(there, first, how)
      for (const board of [here, there])
        for (const key of [LONG, 'import', { ...LONG, on: 'replace' }, SHORT] as const) {
          const again = await board.post('flow', { n: 2 }, { key, name: 'again' })
          expect(again).toMatchObject({ created: false, because: 'window', replaced: false, uuid: first.uuid })
          if (how === 'trash' || history) expect(again).toMatchObject({ state, name: 'first' })
          expect(await again.wait()).toBe(again.state)
        }
      expect(await namesOn(there)).toEqual([])
      expect(await here.post('flow', {}, { key: 'export' })).toMatchObject({ created: true })
    })

    test('was cancelled and discarded', async () => {
      const board = await open()
      const first = await board.post('flow', {}, { key: LONG })
      await board.cancel(first)
      expect(await first.wait()).toBe('TRASHED')
      expect(await board.post('flow', {}, { key: LONG })).toMatchObject({ because: 'window', uuid: first.uuid })
    })

    test('was purged from the trash', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', {}, { key: LONG })
      await end(here, first, 'trash')
      await here.purge(await trashedOf(here, first))
      expect(await there.post('flow', {}, { key: LONG })).toMatchObject({ because: 'window', uuid: first.uuid })
    })

    test('was removed by hand', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const lost = await here.post('flow', {}, { key: LONG })
      await removeRaw(lost)
      expect(await there.post('flow', {}, { key: LONG })).toMatchObject({ because: 'window', uuid: lost.uuid })
    })
  })

  describe('after the window', () => {
    test('the key is still taken while the job is on the board', async () => {
      const board = await open()
      const first = await board.post('flow', {}, { key: SHORT })
      for (let round = 0; round < 5; round++)
        expect(await board.post('flow', {}, { key: SHORT })).toMatchObject({ because: 'waiting', uuid: first.uuid })
    })

    test.each(['consume', 'trash'] as const)('the next post takes the key over: %s', async (how) => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', {}, { key: SHORT })
      await end(there, first, how)
      const next = await postUntilCreated(there, LONG)
      expect(next.uuid).not.toBe(first.uuid)
      await end(here, next, how)
      // From now on the window of the new post counts.
      expect(await here.post('flow', {}, { key: SHORT })).toMatchObject({ because: 'window', uuid: next.uuid })
    })

    test('a post without a window takes the key over, and ends it with its job', async () => {
      const [here, there] = await Promise.all([open(), open()])
      await end(here, await here.post('flow', {}, { key: SHORT }), 'consume')
      let job = await there.post('flow', {}, { key: 'import' })
      while (!job.created) job = await there.post('flow', {}, { key: 'import' })
      await end(here, job, 'consume')
      expect(await here.post('flow', {}, { key: 'import' })).toMatchObject({ created: true })
    })

    test('of many posters at once, one takes the key over', async () => {
      const boards = await Promise.all(Array.from({ length: 4 }, () => open()))
      const [first] = boards
      for (let round = 0; round < 5; round++) {
        const name = `round ${round}`
        const old = await first?.post('flow', {}, { key: { name, for: 5 } })
        if (first && old) await end(first, old, 'consume')
        const untilTaken = async (board: JobBoard) => {
          let job: PostedJob
          do job = await board.post('flow', {}, { key: { name, for: '1h' } })
          while (job.uuid === old?.uuid)
          return job
        }
        const jobs = await Promise.all(boards.flatMap((board) => [untilTaken(board), untilTaken(board)]))
        expect(jobs.filter(({ created }) => created)).toHaveLength(1)
        expect(new Set(jobs.map(({ uuid }) => uuid)).size).toBe(1)
      }
      for (const board of boards) expect(await namesOn(board)).toHaveLength(5)
    })
  })

  describe('a job that is restored', () => {
    test('has its own window, and takes the key again', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', {}, { key: LONG })
      await end(here, first, 'trash')
      await there.restore(await trashedOf(there, first))
      // It has run before.
      expect(await here.post('flow', {}, { key: LONG })).toMatchObject({ because: 'running', uuid: first.uuid })
      const again = await there.find(first.uuid)
      await (await there.claim(again)).consume()
      expect(await here.post('flow', {}, { key: LONG })).toMatchObject({ because: 'window', uuid: first.uuid })
    })

    test('stays in the trash while another job, or its window, has the key', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', {}, { key: SHORT })
      await end(here, first, 'trash')
      const next = await postUntilCreated(there, LONG)
      expect(await rejectionOf(here.restore(await trashedOf(here, first)))).toBeInstanceOf(Duplicate)
      await end(there, next, 'consume')
      expect(await rejectionOf(here.restore(await trashedOf(here, first)))).toBeInstanceOf(Duplicate)
      expect(await namesOn(there)).toEqual([])
    })

    test('takes over a key whose window is over', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', {}, { key: 'import' })
      await end(here, first, 'trash')
      const next = await there.post('flow', {}, { key: SHORT })
      await end(there, next, 'consume')
      const entry = await trashedOf(here, first)
      let left: unknown
      do
        left = await here.restore(entry).then(
          () => undefined,
          (error: unknown) => error,
        )
      while (left instanceof Duplicate)
      expect(left).toBeUndefined()
      expect(await there.post('flow', {}, { key: LONG })).toMatchObject({ because: 'running', uuid: first.uuid })
    })
  })

  test('a job that is posted with others in one transaction keeps to windows, and takes over what is over', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const item = (key: KeyOptions) => ({ flow: 'flow', store: {}, key })
    const posting = (board: JobBoard) =>
      board.postMany([item({ name: 'other', for: '1h' }), item(LONG)], { atomic: true })
    const first = await here.post('flow', {}, { key: LONG })
    await end(here, first, 'consume')
    expect(await rejectionOf(posting(there))).toBeInstanceOf(Duplicate)
    expect(await there.countJobs()).toBe(0)
    const short = { name: 'short', for: 1 } as const
    await end(here, await here.post('flow', {}, { key: short }), 'consume')
    const tryToPost = () => there.postMany([item(short), item({ name: 'x', for: '1h' })], { atomic: true })
    let results: unknown
    do results = await tryToPost().catch((error: unknown) => error)
    while (results instanceof Duplicate)
    expect(results).toMatchObject([{ job: { created: true } }, { job: { created: true } }])
  })

  test('many posts have windows, too, and each answer says why its item created nothing', async () => {
    const board = await open()
    await end(board, await board.post('flow', {}, { key: LONG }), 'consume')
    await board.post('flow', {}, { key: 'waiting' })
    const item = (key: string | KeyOptions) => ({ flow: 'flow', store: {}, key })
    const results = await board.postMany([item(LONG), item('waiting'), item({ name: 'new', for: '1d' })])
    const answers = results.map((result) => ('job' in result ? [result.job.created, result.job.because] : result.error))
    expect(answers).toEqual([
      [false, 'window'],
      [false, 'waiting'],
      [true, undefined],
    ])
  })

  test('a window can be as long as any duration', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const longest = { name: 'for ever', for: '36525d' } as const
    const first = await here.post('flow', {}, { key: longest })
    expect((await there.find(first.uuid)).keyTakenUntil?.getFullYear()).toBeGreaterThan(2_100)
    await end(there, first, 'consume')
    expect(await here.post('flow', {}, { key: longest })).toMatchObject({ because: 'window', uuid: first.uuid })
  })

  test.each([0, '0s', -1, Number.NaN, Number.POSITIVE_INFINITY, '36526d', 'soon', null, {}])(
    'a window of %s is refused',
    async (given) => {
      const board = await open()
      const refused = await rejectionOf(board.post('flow', {}, { key: { name: 'import', for: given as '1h' } }))
      expect(refused).toBeInstanceOf(given === 0 || given === '0s' ? InvalidPosting : InvalidArgument)
      expect(String(refused)).toContain('key.for')
      expect(await board.countJobs()).toBe(0)
    },
  )

  test.each([
    { for: '1h' },
    { name: '' },
    { name: 7 },
    { name: 'x', on: 'debounce' },
    { name: 'x', during: '1h' },
    null,
    ['x'],
    () => 'x',
  ])('a key that is %j is refused', async (given) => {
    const board = await open()
    const refused = await rejectionOf(board.post('flow', {}, { key: given as unknown as KeyOptions }))
    expect(refused instanceof InvalidArgument || refused instanceof InvalidPosting).toBe(true)
    expect(await board.countJobs()).toBe(0)
  })

  if (!hasProcessClock)
    test.each([DAY_MS, -DAY_MS])('the clock of the process is wrong by %d ms: the board’s counts', async (offset) => {
      const real = Date.now.bind(Date)
      vi.spyOn(Date, 'now').mockImplementation(() => real() + offset)
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', {}, { key: LONG })
      await end(here, first, 'consume')
      for (const board of [here, there])
        expect(await board.post('flow', {}, { key: LONG })).toMatchObject({ because: 'window', uuid: first.uuid })
      await end(there, await there.post('flow', {}, { key: { name: 'short', for: 1 } }), 'consume')
      await postUntilCreated(here, { name: 'short', for: 1 })
    })
}
