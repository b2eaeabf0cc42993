/** `jobboard limits …` and the limits of jobs that the command line posts and runs. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { limitKeysTable, limitsTable } from '../../src/cli/output/render/limits.ts'
import { plainPaint, type Screen } from '../../src/cli/output/render/paint.ts'
import { openBoard } from '../../src/index.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining, type Outcome } from './workplace.ts'

describe.skipIf(!zookeeperHosts)('the limits of a board', () => {
  let place: CliFolder
  const limits = (...words: string[]): Promise<Outcome> => place.jobboard(['limits', ...words])

  beforeEach(async () => {
    place = await createCliFolder()
    await place.write('flows.js', FLOWS)
  })
  afterEach(async () => place[Symbol.asyncDispose]())
  afterAll(killRemaining)

  test('are set, listed, shown, held and removed', async () => {
    const set = await limits('set', 'tenant/*', '--concurrency', '2', '--rate', '100/m', '--burst', '5', '--json')
    expect(jsonLines(set.stdout)).toMatchObject([
      { key: 'tenant/*', concurrency: 2, rate: { limit: 100, perMs: 60_000, burst: 5 } },
    ])
    expect((await limits('set', 'flow/hello', '--concurrency', '0')).exitCode).toBe(0)
    const listed = await limits('list')
    expect(listed.stdout).toMatch(/KEY +AT ONCE +RUNNING +RATE +HELD/)
    expect(listed.stdout).toMatch(/tenant\/\* +2 +0 +100\/1m, burst 5/)
    expect(jsonLines((await limits('show', 'tenant/7', '--json')).stdout)).toMatchObject([{ key: 'tenant/*' }])
    expect((await limits('stop', 'tenant/7', '--reason', 'unpaid')).stdout).toMatch(
      /^limit tenant\/7 stopped; .*resume/,
    )
    expect((await limits('show', 'tenant/7')).stdout).toMatch(/tenant\/\* +2 .*: unpaid/)
    await limits('stop', 'tenant/*', '--for', '1h', '--reason', 'the night')
    const [resumed, still] = (await limits('resume', 'tenant/7')).stdout.split('\n')
    expect(resumed).toBe('limit tenant/7 resumed')
    expect(still).toMatch(
      /^still stopped: limit tenant\/\* is held until \S+Z by .*: the night; jobboard limits resume 'tenant\/\*' ends it$/,
    )
    expect((await limits('resume', 'tenant/*')).stdout).toBe('limit tenant/* resumed\n')
    expect((await limits('resume', 'flow/hello')).stdout).toMatch(
      /^limit flow\/hello was not held\nstill stopped: .* permits 0 jobs .*; jobboard limits set flow\/hello --concurrency 1 ends it\n$/,
    )
    expect((await limits('stop', 'api', '--for', '10m')).stdout).toBe(
      'limit api stopped for 10m; jobboard limits resume api ends it earlier\n',
    )
    expect((await limits('stop', 'api', '--for', '60')).stdout).toMatch(/^limit api stopped for 60 ms;/)
    expect(await limits('remove', 'tenant/*', 'lost', 'api')).toEqual({
      exitCode: 1,
      stdout: 'limit tenant/* removed\nlimit api removed\n',
      stderr: 'jobboard: limit lost: nothing is set for it\n',
    })
    expect(await limits('show', 'tenant/7')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^jobboard: limit tenant\/7: nothing is set for it/),
    })
  })

  test('are on the screen of the board: which are stopped, and which have no room', async () => {
    expect((await place.jobboard(['info'])).stdout).not.toContain('limit')
    await limits('set', 'tenant/*', '--concurrency', '1')
    await limits('set', 'api', '--concurrency', '0')
    await limits('stop', 'mail', '--for', '1h')
    await place.jobboard(['post', 'hello', '--limit', 'tenant/7'])
    await using board = await openBoard(place.board)
    const [claim] = await board.claimNext()
    const shown = await place.jobboard(['info'])
    expect(shown.stdout).toContain('\n3 limits; stopped: api, mail; without room: tenant/7\n')
    const [view] = jsonLines((await place.jobboard(['info', '--json'])).stdout)
    expect(view).toMatchObject({ limits: { set: 3, stopped: ['api', 'mail'], full: ['tenant/7'] } })
    await claim.consume()
  })

  test('show how many jobs wait for them', async () => {
    await limits('set', 'tenant/*', '--concurrency', '0')
    for (const key of ['tenant/7', 'tenant/7', 'tenant/8']) await place.jobboard(['post', 'hello', '--limit', key])
    const shown = await limits('show', 'tenant/*')
    expect(shown.stdout).toMatch(/KEY +AT ONCE +RUNNING +WAITING +RATE/)
    expect(shown.stdout).toMatch(/KEY +RUNNING +WAITING +NEXT START *\n *tenant\/7 +0 +2 +-\s+tenant\/8 +0 +1 +-/)
    expect(jsonLines((await limits('show', 'tenant/7', '--json')).stdout)).toMatchObject([
      { key: 'tenant/*', waiting: 2, keys: [{ key: 'tenant/7', running: 0, waiting: 2 }] },
    ])
    expect((await limits('list')).stdout).not.toContain('WAITING')
    expect(jsonLines((await limits('list', '--waiting', '--json')).stdout)).toMatchObject([{ waiting: 3 }])
  })

  test('keep a job waiting, and a run in the foreground does not keep them', async () => {
    await limits('set', 'flow/hello', '--concurrency', '0')
    const store = ['--store', '{"name":"Ada"}', '--flows', 'flows.js']
    const uuid = (await place.jobboard(['post', 'hello', ...store, '--limit', 'api'])).stdout.trim()
    expect(await place.jobboard(['conductor', '--flows', 'flows.js', '--burst'])).toMatchObject({ exitCode: 1 })
    expect((await place.jobboard(['jobs', '--json'])).stdout).toContain(uuid)
    expect(await place.jobboard(['run', 'hello', ...store])).toMatchObject({ exitCode: 0 })
    const held = await place.jobboard(['run', 'hello', ...store, '--limits', '--within', '200ms'])
    expect(held.exitCode).toBe(1)
    await limits('set', 'flow/hello', '--concurrency', '1')
    await place.jobboard(['conductor', '--flows', 'flows.js', '--burst'])
    expect(await place.jobboard(['wait', uuid])).toMatchObject({ stdout: 'COMPLETE\n' })
  })

  test.each([
    [['set', 'api'], /set concurrency, rate, or fair/],
    [['set', 'api', '--rate', '100'], /--rate must be a number and a time, such as 100\/1m, got '100'/],
    [['set', 'api', '--rate', '0/1m'], /rate.limit must be a number above 0/],
    [['set', 'api', '--burst', '3'], /--burst belongs to --rate/],
    [['set', 'api', '--concurrency', '-1'], /--concurrency must be a whole number from 0, got -1/],
    [['set', 'a*b', '--concurrency', '1'], /a pattern has one \*, at its end/],
    [['stop', 'api', '--for', 'long'], /--for/],
  ])('%j is refused in one line', async (words, message) => {
    const { exitCode, stderr } = await limits(...words)
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })
})

test('what is printed of limits is aligned, and hostile texts are escaped', () => {
  const now = new Date('2026-06-01T12:00:00Z')
  const screen: Screen = { paint: plainPaint, width: undefined, now }
  const rows = limitsTable(
    [
      { key: 'tenant/*', concurrency: 2, rate: { limit: 100, perMs: 60_000, burst: 1 }, set: { by: 'ada', at: now } },
      { key: 'api', held: { by: 'eve', since: now, until: now, reason: 'it \u001b[2J answers 429' } },
      { key: 'later', error: new Error('limit later has format 2') },
    ],
    screen,
  )
  expect(rows.map((row) => row.trimEnd())).toEqual([
    'KEY       AT ONCE  RUNNING  RATE    HELD                                                           SET BY',
    'tenant/*  2        0        100/1m  -                                                              ada',
    'api       -        -        -       by eve until 2026-06-01T12:00:00.000Z: it \\x1b[2J answers 429  -',
    'later     -        -        -       -                                                              limit later has format 2',
  ])
})

test('the keys of a limit are printed with their jobs, and a lower bound as one', () => {
  const now = new Date('2026-06-01T12:00:00Z')
  const screen: Screen = { paint: plainPaint, width: undefined, now }
  const keys = [
    { key: 'tenant/7', running: 2, waiting: 19_999, nextStart: now },
    { key: 'tenant/8', running: 0, waiting: 1 },
  ]
  const limit = { key: 'tenant/*', concurrency: 2, keys, waiting: 20_000, waitingIsPartial: true } as const
  expect(limitsTable([limit], screen)[1]).toMatch(/^tenant\/\* +2 +2 +20000 or more /)
  expect(limitKeysTable(limit, screen).map((row) => row.trimEnd())).toEqual([
    'KEY       RUNNING  WAITING        NEXT START',
    'tenant/7  2        19999 or more  2026-06-01T12:00:00.000Z',
    'tenant/8  0        1 or more      -',
  ])
})
