/** What is said to whoever has no compiler, or has typed something wrong; nothing is left hanging or silent. */
import {
  type ConductorOptions,
  type InvalidArgument,
  input,
  linear,
  openBoard,
  runFlow,
  startConductor,
  task,
} from 'jobboard'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'

const greet = task('greet', { requires: ['name'], execute: ({ name }: { name: string }) => `Hello, ${name}!` })
const hello = linear('hello', input<{ name: string }>(), greet)

const loosely = startConductor as (options?: unknown) => Promise<unknown>

describe('startConductor', () => {
  const good = { board: 'memory:', persistence: 'memory:', flows: [hello] }
  const { persistence: _persistence, ...homeless } = good
  const { board: _board, ...boardless } = good
  test.each<[what: string, options: unknown, says: string]>([
    ['no options', undefined, 'a conductor: the options must be an object, as in { board: … }'],
    ['no board', boardless, 'board must be a URI such as zookeeper://127.0.0.1:2181/demo, or an open board'],
    ['no persistence', homeless, 'persistence must be a URI such as directory:./logbooks, or an open persistence'],
    ['a board that is none', { ...good, board: {} }, 'board must be a URI'],
    ['a nonsense of a board', { ...good, board: 'demo' }, 'is not a URI; write zookeeper://127.0.0.1:2181/demo'],
    ['a nonsense of logbooks', { ...good, persistence: './logbooks' }, 'is not a URI; write directory:./logbooks'],
    ['no flows', { ...good, flows: [] }, 'flows must be a non-empty list of flows, as in flows: [hello]'],
    ['flows that are no list', { ...good, flows: hello }, 'flows must be a non-empty list of flows'],
    ['a task in flows', { ...good, flows: [hello, greet] }, 'flows[1] must be a flow, as linear(…) makes it'],
    ['a misspelt option', { ...good, concurency: 2 }, 'has no option "concurency"; did you mean concurrency?'],
    ['no slots', { ...good, concurrency: 0 }, 'concurrency must be a whole number from 1, got 0'],
    ['an empty name', { ...good, name: '' }, 'name must be a non-empty string'],
    ['an odd onFailure', { ...good, onFailure: 'trash' }, "onFailure must be 'retry' or 'consume'"],
    ['the console as a log', { ...good, log: console }, 'log must be a pino logger, as in log: pino()'],
    ['an odd time', { ...good, drainTimeout: 'soon' }, 'drainTimeout: "soon" is not a duration'],
  ])('%s', async (_, options, says) => {
    await expect(loosely(options)).rejects.toMatchObject({
      code: 'JOBBOARD_INVALID_ARGUMENT',
    } satisfies Partial<InvalidArgument>)
    await expect(loosely(options)).rejects.toThrow(says)
  })

  test('an event that there is not', async () => {
    const options: ConductorOptions = { board: 'memory:', persistence: 'memory:', flows: [hello] }
    await using conductor = await startConductor(options)
    const on = conductor.on.bind(conductor) as (event: string, listener: () => void) => void
    expect(() => on('finished', () => undefined)).toThrow(
      'unknown event "finished"; there are started, settled, eventLoopBlocked, stopIgnored, progress, childStarted, childDied, fired, skipped, emptied, error',
    )
  })
})

test('a flow without the store it needs, or no flow at all', async () => {
  await using board = await openBoard('memory:')
  const post = board.post.bind(board) as (...args: unknown[]) => Promise<unknown>
  const run = runFlow as (...args: unknown[]) => Promise<unknown>
  await expect(post(hello)).rejects.toThrow('flow hello requires name: add it to the store')
  await expect(post(hello, { name: 'Ada' }, { prority: 'HIGH' })).rejects.toThrow('did you mean priority?')
  await expect(openBoard('memory:', { whom: 'me' } as never)).rejects.toThrow('openBoard has no option "whom"')
  expect(() => board.on('done' as never, () => undefined)).toThrow('unknown event "done"; there are posted, claimed')
  await expect(run(hello)).rejects.toThrow('flow hello requires name: add it to the store')
  await expect(run('hello', {})).rejects.toThrow('runFlow: the first argument must be a flow, as linear(…) makes it')
  await expect(run(hello, { name: 'Ada' }, { logger: pino() })).rejects.toThrow('runFlow has no option "logger"')
  expect(await board.countJobs()).toBe(0)
})

test('jobs of a flow that is not known are reported once for each flow and version', async () => {
  const lines: { msg: string; flow: string; version?: string; known: string[] }[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  await using board = await openBoard('memory:')
  await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [hello], log })
  for (const flow of ['helo', 'helo', 'hullo']) await board.post(flow, {})
  await board.post({ ...hello, version: '2.0' }, { name: 'Ada' })
  expect(await (await board.post(hello, { name: 'Ada' })).wait()).toBe('COMPLETE')
  expect(lines.map(({ flow, version }) => [flow, version])).toEqual([
    ['helo', undefined],
    ['hullo', undefined],
    ['hello', '2.0'],
  ])
  expect(lines[0]).toMatchObject({ known: ['hello 1.0'], msg: expect.stringContaining('are left to other conductors') })
})
