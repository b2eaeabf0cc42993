/** Bytes that a decoder would unfold, evaluate or choke on are refused before they are decoded. */
import fc from 'fast-check'
import { Packr } from 'msgpackr'
import { describe, expect } from 'vitest'
import { decode, decodeWeighed, encode } from '../../src/core/codec.ts'
import { CYCLE, EXTENSIONS, hugeInteger, nested, PLACE, references, withRaw } from '../support/poison.ts'
import { usual as test, variant } from '../variant.ts'

function decoding(bytes: Uint8Array) {
  return () => decode(bytes, 'msgpack')
}

describe('msgpack is refused', () => {
  test.each<readonly [string, Uint8Array]>([
    ['references that unfold to gigabytes', references(12)],
    ['a value that contains itself', CYCLE],
    ...EXTENSIONS,
    ['an integer of a megabyte', hugeInteger(1_000_000)],
    ['an integer of ten bytes', hugeInteger(10)],
  ])('with %s', (_, raw) => {
    expect(decoding(withRaw({ store: { bad: PLACE } }, raw))).toThrow(/not plain data|where a value begins/)
  })

  test('with an integer of a megabyte, a list or bytes as a key', () => {
    for (const key of [hugeInteger(1_000_000), Buffer.from([0x90]), Buffer.from([0xc4, 1, 0])]) {
      expect(decoding(Buffer.concat([Buffer.from([0x81]), key, Buffer.from([1])]))).toThrow('key that is neither')
    }
  })

  test('with anything behind its end, however large what is before', () => {
    const bytes = Buffer.concat([withRaw([PLACE], references(12)), Buffer.from([0])])
    expect(decoding(bytes)).toThrow()
    expect(decoding(Buffer.concat([encode({ a: 1 }, 'msgpack'), Buffer.from([0])]))).toThrow(
      'has 1 bytes after its end',
    )
  })

  test('torn at any byte, and with a length that promises more than there is', () => {
    const bytes = encode({ a: [1, 2.5, 'text', new Date(0), new Uint8Array(3), { b: -1n }], c: undefined }, 'msgpack')
    for (let length = 0; length < bytes.length; length += 1) {
      expect(decoding(bytes.subarray(0, length))).toThrow()
    }
    expect(decoding(Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff]))).toThrow('ends before its last value')
  })

  test('nested deeper than what is encoded, in either encoding', () => {
    expect(decode(encode(nested(100), 'msgpack'), 'msgpack')).toEqual(nested(100))
    expect(decode(encode(nested(100), 'json'), 'json')).toEqual(nested(100))
    const plain = new Packr({ useRecords: false })
    expect(decoding(plain.pack(nested(101)))).toThrow('deeper than 100')
    expect(() => decode(Buffer.from(JSON.stringify(nested(101))), 'json')).toThrow('deeper than 100')
  })

  test('above the memory that was allowed, before it is decoded', () => {
    const bytes = encode(
      Array.from({ length: 10_000 }, () => []),
      'msgpack',
    )
    expect(decodeWeighed(bytes, 'msgpack').memory).toBeGreaterThan(20 * bytes.length)
    expect(() => decodeWeighed(bytes, 'msgpack', { most: 100_000 })).toThrow('more than 100000 bytes of memory')
    const json = Buffer.from(JSON.stringify(Array.from({ length: 10_000 }, () => [])))
    expect(() => decodeWeighed(json, 'json', { most: 100_000 })).toThrow('more than 100000 bytes of memory')
  })
})

variant('whatever is encoded is decoded again', () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.integer(),
      fc.double(),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n }),
      fc.boolean(),
      fc.constant(null),
      fc.date({ noInvalidDate: true }),
      fc.uint8Array(),
      fc.array(tie('value'), { maxLength: 20 }),
      fc.dictionary(
        fc.string().filter((key) => key !== '__proto__'),
        tie('value'),
        { maxKeys: 20 },
      ),
    ),
  })).value
  const check = (one: unknown) => {
    const bytes = encode(one, 'msgpack')
    expect(encode(decode(bytes, 'msgpack'), 'msgpack')).toEqual(bytes)
  }
  fc.assert(fc.property(value, check), { numRuns: 300 })
  for (const time of [8.64e15, -8.64e15, -1, 2 ** 32 * 1_000, 2 ** 32 * 1_000 + 1]) check(new Date(time))
})
