/** `jobboard run`: a flow in the foreground, its results, how far it is, and its exit code; and `post --wait`. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openBoard, startConductor } from '../../src/index.ts'
import { hello, refused } from './flows.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining } from './workplace.ts'

const STUCK = `
import { input, linear, task } from 'jobboard'
const wait = task('wait', { execute: (_, ctx) => new Promise((_, reject) => {
  ctx.progress(0.5)
  ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
}) })
export const endless = linear('endless', input(), wait)
`

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
  await place.write('stuck.js', STUCK)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

const ADA = ['--flows', 'flows.js', '--store', '{"name":"Ada","password":"hunter2"}']

describe('without a board', () => {
  test('results on standard output, how far it is on standard error', async () => {
    const { exitCode, stdout, stderr } = await place.bare(['run', 'hello', ...ADA])
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'text  "Hello, Ada"\n' })
    expect(stderr.replaceAll(/\d+m?s/g, 'TIME')).toBe(
      'greet  RUNNING\ngreet  SUCCESS  TIME\nprint  RUNNING\nprint  SUCCESS  TIME\n',
    )
    expect(await place.bare(['run', 'hello', ...ADA, '--json', '--quiet', '--redact', 'text'])).toEqual({
      exitCode: 0,
      stdout: '{"flow":"hello","version":"2.1","state":"SUCCESS","results":{"text":"[redacted]"}}\n',
      stderr: '',
    })
  })

  test('what failed, and exit code 1', async () => {
    const { exitCode, stdout, stderr } = await place.bare(['run', 'refused', '--flows', 'flows.js'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toMatch(
      /^refuse {2}RUNNING\nrefuse {2}REVERTED {2}\d+m?s {2}NonRetryable: the paper is out\njobboard: flow refused failed: NonRetryable: the paper is out\n$/,
    )
    const json = await place.bare(['run', 'refused', '--flows', 'flows.js', '--json', '--quiet'])
    expect(jsonLines(json.stdout)).toMatchObject([
      { flow: 'refused', state: 'REVERTED', failure: { name: 'NonRetryable' } },
    ])
  })

  test('Ctrl-C suspends it', async () => {
    const key = new AbortController()
    const running = place.bare(['run', 'endless', '--flows', 'stuck.js', '--persistence', place.persistence], {
      interrupt: key.signal,
      complained: (text) => text.includes('50%') && key.abort(new Error('interrupted')),
    })
    expect(await running).toMatchObject({
      exitCode: 130,
      stderr: expect.stringMatching(/\njobboard: interrupted: flow endless was suspended\n$/),
    })
    const { stdout } = await place.jobboard(['logbook', 'list', '--state', 'SUSPENDED'])
    expect(stdout).toMatch(/endless +SUSPENDED/)
  })

  test.each([
    [['run', 'hello', '--flows', 'flows.js'], 'flow hello requires name: add it to --store'],
    [['run', 'hello'], 'run needs the code of its flows: add --flows MODULE'],
    [['run', 'hello', ...ADA, '--exclusive', 'disk'], '--exclusive is for a job on a board: name one with --board URI'],
    [['run', 'hello', ...ADA, '--deadline', 'soon'], '--deadline: "soon" is not a duration'],
  ])('%j is refused in one line', async (args, says) => {
    const { exitCode, stdout, stderr } = await place.bare(args)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^jobboard: [^\n]+\n$/)
    expect(stderr).toContain(says)
    expect(stderr).not.toContain('hunter2')
  })
})

test('on a board it waits for its resources, and no other conductor runs it', async () => {
  await using board = await openBoard(place.board)
  const holder = await board.post('other', {}, { resources: { exclusive: ['disk'] } })
  await using claim = await board.claim(holder)
  const late = await place.jobboard(['run', 'hello', ...ADA, '--exclusive', 'disk', '--within', '50ms'])
  expect(late).toMatchObject({ exitCode: 1, stdout: '' })
  expect(late.stderr).toMatch(/^jobboard: [^\n]+ within 50ms\n$/)
  const running = place.jobboard(['run', 'hello', ...ADA, '--exclusive', 'disk'])
  await claim.consume()
  expect(await running).toMatchObject({ exitCode: 0, stdout: 'text  "Hello, Ada"\n' })
  expect(await board.countJobs()).toBe(0)
  expect(await place.jobboard(['run', 'hello', ...ADA, '--alone', '--shared', 'disk'])).toMatchObject({ exitCode: 2 })
})

describe('post --wait', () => {
  test('prints how it ended, and its exit code says so', async () => {
    await using _conductor = await startConductor({
      board: place.board,
      persistence: place.persistence,
      flows: [hello, refused],
    })
    const good = await place.jobboard(['post', 'hello', ...ADA, '--wait'])
    expect(good).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^\S{36}\nCOMPLETE\n$/) })
    const bad = await place.jobboard(['post', 'refused', '--wait', '--json'])
    expect([bad.exitCode, jsonLines(bad.stdout)]).toMatchObject([1, [{ name: 'refused', state: 'TRASHED' }]])
  })

  test('reports how far it is', async () => {
    const { board } = place
    const conductor = place.start([
      'conductor',
      '--flows',
      'stuck.js',
      '--drain-timeout',
      '0s',
      '--abort-timeout',
      '1s',
    ])
    await conductor.says('Ctrl-C')
    const waiting = await place.jobboard(['post', 'endless', '--wait', '--within', '3s'])
    expect(waiting).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('run 1, 0 of 1 tasks done: wait') })
    expect(waiting.stderr).toMatch(/still CLAIMED after 3s\n$/)
    expect(waiting.stderr).not.toContain('\x1b')
    const [uuid = ''] = waiting.stdout.split('\n')
    const narrow = await place.jobboard(['wait', uuid, '--within', '3s'], { columns: 20 })
    expect(narrow.stderr).toContain('\r\x1b[Krun 1, 0 of 1 tasks…\r\x1b[K')
    conductor.process.kill('SIGTERM')
    expect((await conductor.ended).exitCode).toBe(0)
    expect(board).toContain('zookeeper')
  })
})
