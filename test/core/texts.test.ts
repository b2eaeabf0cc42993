import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { Emitter } from '../../src/core/events.ts'
import { assertOptions } from '../../src/core/options.ts'
import { isMisspelt, suggestion } from '../../src/core/texts.ts'

describe('a misspelt word', () => {
  test.each([
    ['flow', 'flows'],
    ['borad', 'board'],
    ['Board', 'bord'],
    ['presistance', 'persistence'],
    ['conducter', 'conductor'],
  ])('%s is %s', (word, known) => {
    expect(isMisspelt(word, known)).toBe(true)
  })

  test.each([
    ['list', 'post'],
    ['stop', 'show'],
    ['jobs', 'jobs'],
    ['', 'name'],
    ['concurrency', 'consistency'],
  ])('%s is not %s', (word, known) => {
    expect(isMisspelt(word, known)).toBe(false)
  })

  test('is reported with what was meant, or with all there is', () => {
    expect(suggestion('flow', ['board', 'flows'])).toBe('; did you mean flows?')
    expect(suggestion('limit', ['board', 'flows'])).toBe('; there are board, flows')
    expect(suggestion('since', ['limit'])).toBe('; there is only limit')
    expect(suggestion('limit', [])).toBe('')
  })
})

test('an option that is never read is refused, and so is what is no object', () => {
  const known = { board: true, flows: true } as const
  expect(() => assertOptions({ board: 1 }, known, 'it')).not.toThrow()
  expect(() => assertOptions({ board: 1, flow: 2 }, known, 'it')).toThrow(InvalidArgument)
  expect(() => assertOptions({ flow: 2 }, known, 'it')).toThrow('it has no option "flow"; did you mean flows?')
  for (const nonsense of [undefined, null, 'x', []])
    expect(() => assertOptions(nonsense, known, 'it')).toThrow('it: the options must be an object, as in { board: … }')
})

test('an event that never comes, and a listener that cannot be called, are refused', () => {
  const emitter = new Emitter<{ settled: number }>(() => undefined, { events: { settled: true } })
  const on = emitter.on.bind(emitter) as (event: string, listener: unknown) => unknown
  expect(() => on('setled', () => undefined)).toThrow('unknown event "setled"; did you mean settled?')
  expect(() => on('settled', undefined)).toThrow('on settled: the listener must be a function')
})
