import { expect, test } from 'vitest'
import { decode, encode, roundTrip } from '../../src/core/codec.ts'
import { InvalidArgument } from '../../src/core/errors.ts'

test('a key __proto__ is refused where it would come back as another, at any depth', () => {
  const odd: unknown = JSON.parse('{"list":[{"__proto__":{"admin":true}}]}')
  for (const storing of [() => encode(odd, 'msgpack'), () => roundTrip(odd)]) {
    expect(storing).toThrow(InvalidArgument)
    expect(storing).toThrow('list.0.__proto__ is a key that msgpack cannot carry')
  }
  expect(JSON.stringify(decode(encode(odd, 'json'), 'json'))).toBe(JSON.stringify(odd))
})
