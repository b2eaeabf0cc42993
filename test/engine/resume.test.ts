import { describe, expect, test } from 'vitest'
import { Duplicate, IncompatibleVersion } from '../../src/core/errors.ts'
import { type Logger, silentLog } from '../../src/core/log.ts'
import { input, linear, task } from '../../src/flow/index.ts'
import type { AtomDetail } from '../../src/persistence/index.ts'
import { fails, TaskRecorder, tracing } from './workshop.ts'

function atom(name: string, fields: Partial<AtomDetail> = {}): AtomDetail {
  const updatedAt = new Date()
  return { name, kind: 'task', version: '1.0', state: 'PENDING', intention: 'EXECUTE', meta: {}, updatedAt, ...fields }
}

const done = (name: string): AtomDetail => atom(name, { state: 'SUCCESS', result: `${name}!` })
const x = { name: 'Error', message: 'x' }

/** Keeps the warnings, and is otherwise silent. */
function warnings(): { logger: Logger; lines: string[] } {
  const lines: string[] = []
  const logger: Logger = Object.assign(Object.create(silentLog), {
    warn: (_flow: object, line: string) => lines.push(line),
  })
  return { logger, lines }
}

describe('a flow that went forward', () => {
  test('goes on where it was: what is SUCCESS stays, what was RUNNING runs again', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('half', input(), tracing('a', trace), tracing('b', trace), tracing('c', trace))
    await shop.forge(flow, { state: 'RUNNING', atoms: [done('a'), atom('b', { state: 'RUNNING' }), atom('c')] })
    const ending = await shop.run(flow)
    expect(trace).toEqual(['b', 'c'])
    expect(ending).toMatchObject({ state: 'SUCCESS', results: { a: 'a!', b: 'b!', c: 'c!' } })
    // That flow and task are RUNNING is on record already.
    expect(shop.writes).toEqual(['b SUCCESS="b!", c RUNNING', 'SUCCESS, c SUCCESS="c!"'])
  })

  test.each(['SUSPENDED', 'SUSPENDING', 'RESUMING', 'PENDING'] as const)(
    'and was %s is RUNNING again',
    async (state) => {
      await using shop = new TaskRecorder()
      const flow = linear('half', input(), tracing('a', []), tracing('b', []))
      await shop.forge(flow, { state, atoms: [done('a'), atom('b')] })
      expect((await shop.run(flow)).state).toBe('SUCCESS')
      expect(shop.writes).toEqual(['RUNNING, b RUNNING', 'SUCCESS, b SUCCESS="b!"'])
    },
  )
})

describe('a flow that was on its way back', () => {
  test('goes on going back, with the results and failures of its last process', async () => {
    await using shop = new TaskRecorder()
    const trace: unknown[] = []
    const undo = (name: string) =>
      task(name, {
        execute: (): string => fails('never')(),
        revert: (_args, { result, failure, failures }) => trace.push([name, result, failure?.message, failures.length]),
      })
    const flow = linear('back', input(), undo('a'), undo('b'), undo('c'), undo('d'))
    const back = { intention: 'REVERT' } as const
    await shop.forge(flow, {
      state: 'RUNNING',
      atoms: [
        { ...done('a'), ...back },
        atom('b', { ...back, state: 'REVERTING', result: 'b!' }),
        atom('c', { ...back, state: 'REVERTED', failure: x }),
        atom('d'),
      ],
    })
    const ending = await shop.run(flow)
    expect(trace).toEqual([
      ['b', 'b!', undefined, 1],
      ['a', 'a!', undefined, 1],
    ])
    expect(ending).toEqual({ state: 'REVERTED', results: {}, failures: [x], revertFailures: [] })
    expect(await shop.states()).toBe('REVERTED, a REVERTED, b REVERTED, c REVERTED, d PENDING')
  })

  test('reverts a task whose outcome died with its process', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('unknown', input(), tracing('a', trace), tracing('b', trace))
    const a = { ...done('a'), intention: 'REVERT' } as const
    await shop.forge(flow, { state: 'RUNNING', atoms: [a, atom('b', { state: 'RUNNING', intention: 'REVERT' })] })
    expect(await shop.run(flow)).toMatchObject({ state: 'REVERTED', failures: [] })
    expect(trace).toEqual(['-b', '-a'])
  })

  test('of which nothing is left to revert is REVERTED', async () => {
    await using shop = new TaskRecorder()
    const flow = linear('rest', input(), tracing('a', []))
    await shop.forge(flow, { state: 'SUSPENDED', atoms: [atom('a', { state: 'REVERTED', failure: x })] })
    expect(await shop.run(flow)).toMatchObject({ state: 'REVERTED', failures: [x] })
    expect(shop.writes).toEqual(['REVERTED'])
  })

  test('and whose new code requires what never was provided fails in that revert', async () => {
    await using shop = new TaskRecorder()
    const tasks = [tracing('new', []), tracing('old', [], { requires: ['new'] })]
    const flow = linear('changed', input(), ...tasks)
    const old = { ...done('old'), intention: 'REVERT' } as const
    await shop.forge(flow, { state: 'RUNNING', atoms: [old, atom('gone', { state: 'REVERTED', failure: x })] })
    const ending = await shop.run(flow)
    expect(ending).toMatchObject({ state: 'FAILURE', revertFailures: [{ code: 'JOBBOARD_MISSING_DEPENDENCIES' }] })
  })
})

describe('a flow that had ended badly', () => {
  test('as REVERTED starts anew from clean atoms, in its first write', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    let broken = true
    const flaky = { during: () => (broken ? fails('x')() : undefined) }
    const flow = linear('again', input(), tracing('a', trace), tracing('b', trace, flaky), tracing('c', trace))
    await shop.run(flow)
    broken = false
    trace.length = 0
    shop.writes.length = 0
    const ending = await shop.run(flow)
    expect(ending).toMatchObject({ state: 'SUCCESS', failures: [] })
    expect(trace).toEqual(['a', 'b', 'c'])
    expect(shop.writes[0]).toBe('RUNNING, a RUNNING, b PENDING, c PENDING')
    expect((await shop.detail()).atoms.some((record) => 'failure' in record || 'revertResult' in record)).toBe(false)
  })

  test('as FAILURE starts anew as well, without the failures of before', async () => {
    await using shop = new TaskRecorder()
    const flow = linear('again', input(), tracing('a', []), tracing('b', []))
    const stuck = atom('b', {
      state: 'REVERT_FAILURE',
      intention: 'REVERT',
      result: 'b!',
      failure: x,
      revertFailure: x,
    })
    await shop.forge(flow, { state: 'FAILURE', atoms: [done('a'), stuck] })
    expect(await shop.run(flow)).toMatchObject({ state: 'SUCCESS', failures: [], revertFailures: [] })
    expect(shop.writes[0]).toBe('RUNNING, a RUNNING, b PENDING')
  })
})

describe('code that has changed since', () => {
  test('executes tasks that are new, leaves alone those that are gone, and says so', async () => {
    await using shop = new TaskRecorder()
    const { logger, lines } = warnings()
    const trace: string[] = []
    const flow = linear({ name: 'changed', version: '2.0' }, input(), tracing('a', trace), tracing('new', trace))
    await shop.forge(linear('changed', input(), tracing('a', [])), {
      state: 'RUNNING',
      atoms: [done('a'), atom('gone', { state: 'RUNNING' })],
    })
    expect((await shop.run(flow, { logger })).results).toEqual({ a: 'a!', new: 'new!' })
    expect(trace).toEqual(['new'])
    expect(await shop.states()).toBe('SUCCESS, a SUCCESS, gone RUNNING, new SUCCESS')
    expect(lines).toEqual([
      'the flow was begun by version 1.0 and goes on with 2.0',
      'atom gone is in the logbook but not in the flow any more: it is left as it is',
    ])
  })

  test('keeps what another version of a task has done, and notes it', async () => {
    await using shop = new TaskRecorder()
    const { logger, lines } = warnings()
    const trace: string[] = []
    const newer = (name: string) => task(name, { version: '2.0', execute: () => trace.push(name) })
    const flow = linear('versions', input(), newer('a'), newer('b'))
    await shop.forge(flow, { state: 'RUNNING', atoms: [done('a'), atom('b')] })
    await shop.run(flow, { logger })
    expect(trace).toEqual(['b'])
    expect(lines).toEqual([
      'atom a was recorded by version 1.0 and is 2.0 now',
      'atom b was recorded by version 1.0 and is 2.0 now',
    ])
    expect((await shop.detail()).atoms.map(({ version }) => version)).toEqual(['1.0', '2.0'])
  })

  test('without the task that failed goes on going back, for the same reason', async () => {
    await using shop = new TaskRecorder()
    const trace: string[] = []
    const flow = linear('changed', input(), tracing('a', trace), tracing('c', trace))
    await shop.forge(flow, { state: 'RUNNING', atoms: [done('a'), atom('gone', { state: 'FAILURE', failure: x })] })
    expect(await shop.run(flow)).toMatchObject({ state: 'REVERTED', failures: [x] })
    expect(trace).toEqual(['-a'])
  })

  test('that makes another kind of atom of a name is refused, and so are kinds from the future', async () => {
    await using shop = new TaskRecorder()
    const flow = linear('kinds', input(), tracing('a', []))
    await shop.forge(flow, { atoms: [atom('a', { kind: 'retry' })] })
    await expect(shop.run(flow)).rejects.toThrow(Duplicate)
    await shop.forge(flow, { atoms: [atom('a', { kind: 'oracle' as 'task' })] })
    await expect(shop.run(flow)).rejects.toThrow(IncompatibleVersion)
    expect(shop.writes).toEqual([])
  })
})
