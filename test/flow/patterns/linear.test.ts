import { describe, expect, test, vi } from 'vitest'
import { Duplicate, InvalidArgument } from '../../../src/core/errors.ts'
import { type AnyTask, input, isFlow, linear, missingInputs, task } from '../../../src/flow/index.ts'

const greet = task('greet', {
  requires: ['name'],
  provides: 'text',
  execute: ({ name }: { name: string }) => `Hello, ${name}!`,
})
const print = task('print', {
  requires: ['text', 'paper'],
  execute: ({ text, paper }: { text: string; paper: string }) => text + paper,
})

describe('linear', () => {
  test('is a frozen value that knows what it requires and provides', () => {
    const hello = linear({ name: 'hello', version: '2.0' }, input<{ name: string; paper: string }>(), greet, print)
    expect(hello).toEqual({
      kind: 'flow',
      pattern: 'linear',
      name: 'hello',
      version: '2.0',
      atoms: [greet, print],
      requires: ['name', 'paper'],
      provides: ['text'],
      keepResults: false,
    })
    expect([hello, hello.atoms, hello.requires, hello.provides].every(Object.isFrozen)).toBe(true)
  })

  test('has version 1.0 unless the options say otherwise', () => {
    expect(linear('hello', input<{ name: string }>(), greet).version).toBe('1.0')
    expect(linear({ name: 'hello' }, input<{ name: string }>(), greet).version).toBe('1.0')
  })

  test('requires from its store what is provided only afterwards', () => {
    const tasks: AnyTask[] = [print, greet]
    expect(linear('late', input<{ name: string; text: string; paper: string }>(), ...tasks).requires).toEqual([
      'text',
      'paper',
      'name',
    ])
  })

  test('refuses two tasks of one name', () => {
    const twice = () => linear('hello', input<{ name: string }>(), greet, greet)
    expect(twice).toThrow(Duplicate)
    expect(twice).toThrow('flow hello: two of its tasks are named greet')
  })

  const loose = linear as (...args: unknown[]) => unknown

  test.each([
    ['an empty name', () => loose('', input()), 'a flow needs a name'],
    ['no name', () => loose(undefined, input()), 'a flow needs a name'],
    [
      'an empty version',
      () => loose({ name: 'f', version: '' }, input()),
      "flow f: version must be a non-empty string, such as '1.0'",
    ],
    ['no input', () => loose('f', greet), 'flow f: the second argument must be input<…>()'],
    ['a list without tasks', () => loose('f', input()), 'flow f has no tasks: name them after its input'],
    [
      'a misspelt option',
      () => loose({ name: 'f', versoin: '2' }, input(), greet),
      'flow f has no option "versoin"; did you mean version?',
    ],
    ['what is no task', () => loose('f', input(), greet, execute), 'flow f: number 2 in its list is not a task'],
    [
      'what only looks like a task',
      () => loose('f', input(), { ...greet }),
      'flow f: number 1 in its list is not a task',
    ],
  ])('refuses %s in one line', (_what, make, message) => {
    expect(make).toThrow(InvalidArgument)
    expect(make).toThrow(message)
  })

  const execute = () => undefined
})

test('missingInputs names what a store lacks; inherited names do not count', () => {
  const tasks: AnyTask[] = [task('t', { requires: ['toString', 'name', 'paper'], execute: () => undefined })]
  const flow = linear('f', input(), ...tasks)
  expect(missingInputs(flow, {})).toEqual(['toString', 'name', 'paper'])
  expect(missingInputs(flow, undefined)).toEqual(['toString', 'name', 'paper'])
  expect(missingInputs(flow, { paper: undefined, toString: 1, more: 2 })).toEqual(['name'])
})

describe('isFlow', () => {
  test('knows flows, and nothing that only looks like one', () => {
    const flow = linear('f', input<{ name: string }>(), greet)
    expect([isFlow(flow), isFlow({ ...flow }), isFlow(greet), isFlow(null), isFlow('f')]).toEqual([
      true,
      false,
      false,
      false,
      false,
    ])
  })

  test('knows the flows and tasks of another copy of the library', async () => {
    vi.resetModules()
    const other = await import('../../../src/flow/index.ts')
    expect(other.linear).not.toBe(linear)
    expect(isFlow(other.linear('f', other.input<{ name: string }>(), greet))).toBe(true)
    expect(
      linear('mixed', other.input<{ name: string }>(), other.task('t', { execute: () => undefined })).atoms,
    ).toHaveLength(1)
  })
})
