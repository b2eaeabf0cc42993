/** `info` and `jobs --watch`: how a board is doing, once, and again whenever it has changed. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openBoard } from '../../../src/index.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from '../workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** What it prints, until Ctrl-C; `until` waits for words in it. */
function watching(args: readonly string[], columns?: number, rows?: number) {
  const key = new AbortController()
  let said = ''
  const outcome = place.jobboard([...args, '--watch', '--interval', '10ms'], {
    interrupt: key.signal,
    ...(columns === undefined ? {} : { columns }),
    ...(rows === undefined ? {} : { rows }),
    heard: (text) => {
      said += text
    },
  })
  return {
    until: (words: RegExp | string) => expect.poll(() => said, { interval: 5, timeout: 10_000 }).toMatch(words),
    end: async () => {
      key.abort(new Error('interrupted'))
      return outcome
    },
  }
}

test('info --json: counts, trash, conductors and what runs', async () => {
  await using board = await openBoard(place.board, { who: 'somebody' })
  await board.post('hello', {}, { priority: 'HIGH' })
  await board.cancel(await board.post('gone', {}))
  await using claim = await board.claim(await board.post('busy', {}, { name: 'a name' }))
  const metadata = { state: 'busy', running: 1, concurrency: 4, flows: ['hello'] }
  await using _conductor = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
  const none = { unclaimed: 0, claimed: 0 }
  expect(jsonLines((await place.jobboard(['info', '--json'])).stdout)).toEqual([
    {
      board: place.board,
      state: 'connected',
      paused: false,
      jobs: {
        unclaimed: 1,
        claimed: 1,
        byPriority: {
          VERY_HIGH: none,
          HIGH: { unclaimed: 1, claimed: 0 },
          NORMAL: { unclaimed: 0, claimed: 1 },
          LOW: none,
          VERY_LOW: none,
        },
      },
      trashed: 1,
      conductors: [{ name: 'one', ...metadata }],
      queues: [
        { queue: 'default', unclaimed: 1, claimed: 1, oldest: expect.any(String), conductors: 1, endedPerMinute: 1 },
      ],
      slots: { busy: 1, all: 4 },
      running: [{ uuid: claim.job.uuid, name: 'a name', owner: 'somebody', since: expect.any(String) }],
    },
  ])
})

describe('--watch', () => {
  test('in a pipe: a frame for each change, without colours', async () => {
    await using board = await openBoard(place.board)
    const watch = watching(['info'])
    await watch.until(/UNCLAIMED +0\n/)
    await board.post('hello', {})
    await watch.until(/UNCLAIMED +1 /)
    await board.pause()
    await watch.until(/ {2}paused/)
    const { exitCode, stdout } = await watch.end()
    expect(exitCode).toBe(0)
    expect(stdout).not.toContain('\x1b')
    // A pause is two changes: the board is paused, and then the record says by whom.
    expect([3, 4]).toContain(stdout.match(/^zookeeper:/gm)?.length)
  })

  test('on a terminal: over what was there before', async () => {
    await using board = await openBoard(place.board)
    const watch = watching(['jobs'], 80)
    await watch.until('no jobs on ')
    await board.post('hello', {})
    await watch.until(/hello/)
    const { stdout } = await watch.end()
    const frames = stdout.split('\x1b[H')
    expect(frames.length).toBeGreaterThan(2)
    for (const frame of frames.slice(1)) expect(frame.endsWith('\x1b[K\n\x1b[J')).toBe(true)
  })

  test('info on a low terminal: the conductors, and not the bars of the priorities; what still is too much is counted', async () => {
    await using board = await openBoard(place.board)
    const metadata = { flows: ['hello'], concurrency: 1, running: 0 }
    await using _one = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
    const frameOf = async (rows: number, last: string) => {
      const watch = watching(['info'], 80, rows)
      await watch.until(last)
      const [, frame = ''] = (await watch.end()).stdout.split('\x1b[H')
      return frame.replaceAll('\x1b[K', '').split('\n').slice(0, -1)
    }
    const high = await frameOf(24, 'one ')
    expect(high.filter((line) => /^VERY_(HIGH|LOW) /.test(line))).toHaveLength(2)
    const low = await frameOf(12, 'one ')
    expect(low.length).toBeLessThan(12)
    expect(low.join('\n')).not.toContain('VERY_')
    expect(low).toEqual(expect.arrayContaining([expect.stringMatching(/^UNCLAIMED /), expect.stringMatching(/^one /)]))
    const lowest = await frameOf(5, 'lines more')
    expect(lowest).toHaveLength(4)
    expect(lowest.at(-1)).toMatch(/^… and \d+ lines more$/)
  })

  test('on a terminal that does not know how wide it is: whole', async () => {
    await using board = await openBoard(place.board)
    const job = await board.post('hello', {})
    const watch = watching(['jobs'], 0)
    await watch.until(`${job.uuid}  hello`)
    expect((await watch.end()).stdout).not.toContain('…')
  })

  test('jobs --json: each job whenever it has changed, and how it left', async () => {
    await using board = await openBoard(place.board)
    const job = await board.post('hello', {})
    const watch = watching(['jobs', '--json'])
    await watch.until('UNCLAIMED')
    const claim = await board.claim(job)
    await watch.until('"CLAIMED"')
    await claim.consume()
    await watch.until('COMPLETE')
    const { stdout } = await watch.end()
    const states = (jsonLines(stdout) as { uuid: string; state: string }[]).map(({ uuid, state }) => [uuid, state])
    expect(states).toEqual(['UNCLAIMED', 'CLAIMED', 'COMPLETE'].map((state) => [job.uuid, state]))
  })

  test('the end of the terminal ends it as Ctrl-C does', async () => {
    await using _board = await openBoard(place.board)
    const watch = place.start(['jobs', '--watch'])
    await watch.says('no jobs on ')
    watch.process.kill('SIGHUP')
    expect(await watch.ended).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test('an interval that is none is refused', async () => {
    await using _board = await openBoard(place.board)
    const { exitCode, stderr } = await place.jobboard(['info', '--watch', '--interval', 'often'])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--interval: "often" is not a duration')])
  })
})
