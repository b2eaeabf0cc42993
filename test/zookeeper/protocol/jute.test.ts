import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JuteReader, JuteWriter, MalformedBytes } from '../../../src/zookeeper/protocol/jute.ts'

const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const bytes = fc.option(fc.uint8Array({ maxLength: 2_000 }))
const text = fc.string({ unit: 'binary', maxLength: 300 })

describe('jute', () => {
  test('reads back what it wrote', () => {
    fc.assert(
      fc.property(int, long, fc.boolean(), bytes, text, fc.array(text), (i, l, b, y, t, v) => {
        const writer = new JuteWriter().int(i).long(l).boolean(b).bytes(y).text(t)
        writer.vector(v, (item) => writer.text(item))
        const reader = new JuteReader(writer.finish())
        expect(reader.int()).toBe(i)
        expect(reader.long()).toBe(l)
        expect(reader.boolean()).toBe(b)
        const read = reader.bytes()
        expect(read === null ? null : new Uint8Array(read)).toEqual(y)
        expect(reader.text()).toBe(t)
        expect(reader.vector(4, () => reader.text())).toEqual(v)
        expect(reader.remaining).toBe(0)
      }),
    )
  })

  test('null and empty bytes are two things', () => {
    const reader = new JuteReader(new JuteWriter().bytes(null).bytes(new Uint8Array()).finish())
    expect(reader.bytes()).toBeNull()
    expect(reader.bytes()).toHaveLength(0)
  })

  test('null texts and vectors are read as empty', () => {
    const reader = new JuteReader(new JuteWriter().int(-1).int(-1).finish())
    expect(reader.text()).toBe('')
    expect(reader.vector(4, () => reader.text())).toEqual([])
  })

  test('bytes that end too early are malformed, wherever they end', () => {
    const writer = new JuteWriter().int(7).long(7n).boolean(true).bytes(Buffer.from('abc')).text('def')
    writer.vector(['x', 'y'], (item) => writer.text(item))
    const whole = writer.finish()
    for (let end = 0; end < whole.length; end++) {
      const reader = new JuteReader(whole.subarray(0, end))
      const read = () => {
        reader.int()
        reader.long()
        reader.boolean()
        reader.bytes()
        reader.text()
        reader.vector(4, () => reader.text())
      }
      expect(read, `cut at ${end}`).toThrow(MalformedBytes)
    }
  })

  test('a length or a count that cannot be true is malformed and allocates nothing', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: 9, max: 2 ** 31 - 1 }), fc.integer({ min: -(2 ** 31), max: -2 })),
        (length) => {
          const lying = new JuteWriter().int(length).long(0n).finish()
          expect(() => new JuteReader(lying).bytes()).toThrow(MalformedBytes)
          expect(() => new JuteReader(lying).text()).toThrow(MalformedBytes)
          let made = 0
          expect(() => new JuteReader(lying).vector(4, () => made++)).toThrow(MalformedBytes)
          expect(made).toBe(0)
        },
      ),
    )
  })
})
