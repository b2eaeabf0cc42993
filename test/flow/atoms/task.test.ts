import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { isTask, task } from '../../../src/flow/index.ts'

const execute = () => undefined

describe('task', () => {
  test('is a frozen value with everything it was given', () => {
    const revert = () => undefined
    const requires: ('a' | 'b')[] = ['a', 'b']
    const made = task('t', { requires, provides: 'c', version: '2.1', execute, revert })
    expect(made).toEqual({
      kind: 'task',
      name: 't',
      version: '2.1',
      requires: ['a', 'b'],
      provides: 'c',
      execute,
      revert,
    })
    requires.pop()
    expect(made.requires).toEqual(['a', 'b'])
    expect(Object.isFrozen(made) && Object.isFrozen(made.requires)).toBe(true)
  })

  test('needs nothing but a name and what to execute', () => {
    const made = task('t', { execute })
    expect(made).toMatchObject({ requires: [], version: '1.0' })
    expect([made.provides, made.revert]).toEqual([undefined, undefined])
  })

  const loose = task as (name: unknown, options?: unknown) => unknown

  test.each([
    ['an empty name', () => loose(' ', { execute }), "a task's name must be a non-empty string"],
    ['a name that is no text', () => loose(3, { execute }), "a task's name must be a non-empty string"],
    ['no options', () => loose('t'), 'task t: execute must be a function'],
    ['nothing to execute', () => loose('t', { execute: 'x' }), 'task t: execute must be a function'],
    ['a revert that is none', () => loose('t', { execute, revert: 1 }), 'task t: revert must be a function'],
    ['requires as text', () => loose('t', { execute, requires: 'a' }), 'task t: requires must be a list of names'],
    ['an empty requirement', () => loose('t', { execute, requires: [''] }), 'task t: requires must be a list of names'],
    ['provides as number', () => loose('t', { execute, provides: 3 }), 'task t: provides must be a name'],
    ['a list of no names', () => loose('t', { execute, provides: [] }), 'task t: provides must be a name'],
    ['one name twice', () => loose('t', { execute, provides: ['a', 'a'] }), 'task t: provides must be a name'],
    ['keys that are none', () => loose('t', { execute, provides: { keys: 'a' } }), 'task t: provides must be a name'],
    ['a priority as text', () => loose('t', { execute, priority: 'high' }), 'task t: priority must be a number'],
    [
      'a deadline in words',
      () => loose('t', { execute, deadline: 'soon' }),
      'task t: deadline: "soon" is not a duration',
    ],
    ['a hook that is none', () => loose('t', { execute, preExecute: 1 }), 'task t: preExecute must be a function'],
    [
      'an argument bound that is not there',
      () => loose('t', { execute, rebind: { a: 'b' } }),
      'task t: rebind names a, which is in neither requires nor optional',
    ],
    ['inject as list', () => loose('t', { execute, inject: [1] }), 'task t: inject must be an object'],
    [
      'a version as number',
      () => loose('t', { execute, version: 1 }),
      "task t: version must be a non-empty string, such as '1.0'",
    ],
    [
      'a misspelt option',
      () => loose('t', { execute, require: ['a'] }),
      'has no option "require"; did you mean requires?',
    ],
  ])('refuses %s in one line', (_what, make, message) => {
    expect(make).toThrow(InvalidArgument)
    expect(make).toThrow(message)
  })

  test('is distinguished from what only looks like it', () => {
    const made = task('t', { execute })
    expect([isTask(made), isTask({ ...made }), isTask(undefined), isTask(execute)]).toEqual([true, false, false, false])
  })
})
