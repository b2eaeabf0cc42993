import fc from 'fast-check'
import { expect, expectTypeOf, test } from 'vitest'
import { defined } from '../../src/core/options.ts'

test('defined leaves out what is undefined, and nothing else', () => {
  const values = fc.dictionary(
    fc.string().filter((key) => key !== '__proto__'),
    fc.oneof(fc.anything(), fc.constant(undefined)),
  )
  fc.assert(
    fc.property(values, (given) => {
      const before = { ...given }
      const kept = defined(given)
      expect(given).toEqual(before)
      expect(Object.keys(kept)).toEqual(Object.keys(given).filter((key) => given[key] !== undefined))
      for (const [key, value] of Object.entries(kept)) expect(value).toBe(given[key])
    }),
  )
})

test('what may be undefined is optional in the type of the result', () => {
  const signal: AbortSignal | undefined = new AbortController().signal
  const options: { readonly max: number; readonly signal?: AbortSignal } = defined({
    max: 1,
    signal: signal as AbortSignal | undefined,
  })
  expect(options).toEqual({ max: 1, signal })
  expectTypeOf(defined({ max: 1, name: 'a' as string | undefined }).max).toEqualTypeOf<number>()
})
