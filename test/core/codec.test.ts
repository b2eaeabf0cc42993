import { expect, test } from 'vitest'
import { copyPlain, decode, encode, roundTrip } from '../../src/core/codec.ts'
import { InvalidArgument } from '../../src/core/errors.ts'

test('a key __proto__ is refused where it would come back as another, at any depth', () => {
  const odd: unknown = JSON.parse('{"list":[{"__proto__":{"admin":true}}]}')
  for (const storing of [() => encode(odd, 'msgpack'), () => roundTrip(odd)]) {
    expect(storing).toThrow(InvalidArgument)
    expect(storing).toThrow('list.0.__proto__ is a key that msgpack cannot carry')
  }
  expect(JSON.stringify(decode(encode(odd, 'json'), 'json'))).toBe(JSON.stringify(odd))
})

test('a copy of plain data is equal to it and independent of it, also where the fast way does not copy it', () => {
  const bytes = new Uint8Array([1, 2])
  const plain = { text: 'a', list: [1, { deep: true }], at: new Date(7), none: null }
  const odd = { bytes, zero: -0, absent: undefined, big: 2n ** 60n, half: '\ud800', list: [new Date(8)] }
  for (const value of [plain, odd, [plain, odd], 'text', undefined]) {
    const copy = copyPlain(value)
    expect(copy).toStrictEqual(value)
    if (typeof value === 'object') expect(copy).not.toBe(value)
  }
  const copy = copyPlain({ plain, odd })
  copy.plain.list.push(3)
  copy.odd.bytes[0] = 9
  copy.odd.list[0]?.setTime(0)
  expect(plain.list).toHaveLength(2)
  expect(bytes[0]).toBe(1)
  expect(odd.list[0]?.getTime()).toBe(8)
})
