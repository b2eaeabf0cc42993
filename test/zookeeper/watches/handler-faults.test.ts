import { type Logger, pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { HandlerErrorReporter, type HandlerFault } from '../../../src/zookeeper/watches/handler-faults.ts'

function lab(options: { log?: Logger; heard?: boolean } = {}) {
  const told: HandlerFault[] = []
  const faults = new HandlerErrorReporter({
    log: options.log,
    emit: (fault) => {
      told.push(fault)
      return options.heard ?? false
    },
  })
  return { faults, told }
}

/** The warnings of the process until its next turn, of handlers. */
async function warnings(during: () => void): Promise<NodeJS.ErrnoException[]> {
  const found: NodeJS.ErrnoException[] = []
  const end = createDeferred()
  const hear = (warning: NodeJS.ErrnoException) => {
    if (warning.code === 'JOBBOARD_HANDLER_THREW') found.push(warning)
    if (warning.name === 'JobboardTest') end.resolve()
  }
  process.on('warning', hear)
  during()
  // Warnings come in the order in which they were given: this is the last one.
  process.emitWarning('the end', 'JobboardTest')
  await end.promise
  process.off('warning', hear)
  return found
}

function fail(): never {
  throw new Error('it throws again')
}

describe('what a handler threw', () => {
  const error = new TypeError('x is not a function')

  test('is an event, with the path or the event that it was about', () => {
    const { faults, told } = lab({ heard: true })
    faults.reportWatch(error, '/inbox')
    faults.reportListener(error, 'state')
    expect(told).toEqual([
      { error, watch: '/inbox' },
      { error, event: 'state' },
    ])
  })

  test('is logged with its stack and the path', () => {
    const lines: string[] = []
    const { faults } = lab({ log: pino({ level: 'error' }, { write: (line) => lines.push(line) }) })
    faults.reportWatch(error, '/inbox')
    const [line] = lines.map((each) => JSON.parse(each))
    expect(line).toMatchObject({
      watch: '/inbox',
      err: { type: 'TypeError', stack: expect.stringContaining('.test.ts') },
    })
    expect(line.msg).toContain('/inbox')
  })

  test('is a warning of the process where there is no listener and nothing is logged, once a client', async () => {
    const { faults } = lab()
    const [first, ...others] = await warnings(() => {
      faults.reportWatch(error, '/inbox')
      faults.reportWatch(error, '/other')
    })
    expect(first?.message).toContain('/inbox')
    expect(first?.message).toContain('x is not a function')
    expect(others).toEqual([])
    const heard = lab({ heard: true })
    const logged = lab({ log: pino({ level: 'silent' }) })
    const none = await warnings(() => {
      for (const { faults: each } of [heard, logged]) each.reportWatch(error, '/inbox')
    })
    expect(none).toEqual([])
  })

  test('of a listener for failures is not reported to that listener again', async () => {
    const { faults, told } = lab({ heard: true })
    expect(await warnings(() => faults.reportListener(error, 'error'))).toHaveLength(1)
    expect(told).toEqual([])
  })

  test.each<[string, () => unknown]>([
    ['whose message throws', () => Object.defineProperty(new Error(), 'message', { get: fail })],
    ['whose stack throws', () => Object.defineProperty(new Error(), 'stack', { get: fail })],
    ['whose stack is no text', () => Object.assign(new Error('x'), { stack: Symbol('stack') })],
    ['that cannot be looked at', () => new Proxy(new Error(), { get: fail, getPrototypeOf: fail })],
  ])('may be an error %s: it is logged, reported and warned of all the same', async (_, make) => {
    const thrown = make()
    const lines: string[] = []
    const logged = lab({ log: pino({ level: 'error' }, { write: (line) => lines.push(line) }) })
    logged.faults.reportWatch(thrown, '/inbox')
    expect(lines).toHaveLength(1)
    expect(logged.told).toHaveLength(1)
    expect(await warnings(() => lab().faults.reportWatch(thrown, '/inbox'))).toHaveLength(1)
  })

  test('does not disturb others where the logger throws, too', () => {
    const log = pino({ level: 'error' }, { write: fail })
    const { faults, told } = lab({ log })
    faults.reportWatch(error, '/inbox')
    expect(told).toHaveLength(1)
  })

  test('may be anything', async () => {
    const { faults } = lab()
    const [warning] = await warnings(() => faults.reportListener(undefined, 'session'))
    expect(warning?.message).toContain('a listener of session')
  })
})
