/** TaskFlow's JSON, read and written: what this library does not change stays to the letter. */
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { ownBoard } from '../../../../../src/board/backends/zookeeper/store/board-kind.ts'
import {
  decodeSharedPosting,
  encodeSharedPosting,
  sliceFields,
} from '../../../../../src/board/backends/zookeeper/taskflow/shared-posting.ts'
import { makePosting } from '../../../../../src/board/model/posting/post-options.ts'
import { InvalidArgument, InvalidPosting } from '../../../../../src/core/errors.ts'
import { usual as test, variant } from '../../../../variant.ts'

const UUID = '0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab'
const LIMIT = 1_000_000

const read = (text: string) => decodeSharedPosting(Buffer.from(text)).posting
const write = (posting: ReturnType<typeof read>) =>
  Buffer.from(encodeSharedPosting(posting, { limit: LIMIT })).toString()

/** As others write JSON: with room between, and numbers in every notation. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')} ]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)} :\t${spaced(item)}`)
  return `{ ${fields.join(',\n')} }`
}

describe('the fields of a JSON object', () => {
  variant('are found as they are written, whatever stands in texts', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const fields = sliceFields(spaced(object))
        const parsed: Record<string, unknown> = JSON.parse(spaced(object))
        expect([...fields.keys()].sort()).toEqual(Object.keys(parsed).sort())
        for (const [field, text] of fields) expect(JSON.parse(text)).toEqual(parsed[field])
      }),
      { numRuns: 2_000 },
    )
  })

  test('of two of one name the last one counts, as it does for JSON.parse', () => {
    expect([...sliceFields('{"a": 1, "b": "}", "a": {"a": 2}}')]).toEqual([
      ['a', '{"a": 2}'],
      ['b', '"}"'],
    ])
  })
})

describe('a posting of TaskFlow', () => {
  const NUMBERS = ['2.0', '1e5', '1E-7', '-0', '12345678901234567890', '0.1000', '1e999']

  test.each(NUMBERS)('keeps the number %s where the library does not use it', (number) => {
    const details = `{"deep": [{"n": ${number}}]}`
    const posting = read(`{"uuid": "${UUID}", "name": "x", "details": ${details}, "extra": ${number}}`)
    const claimed = { ...posting, runs: 7, attempts: [{ who: 'me', at: new Date(0) }] }
    const text = write(claimed)
    expect(text).toContain(`"details":${details}`)
    expect(text).toContain(`"extra":${number}`)
    expect(read(text)).toMatchObject({ runs: 7, attempts: [{ who: 'me', at: new Date(0) }] })
    // Also the next time, and the time after that.
    expect(write(read(text))).toBe(text)
  })

  test('what changes from claim to claim is never what was read', () => {
    const posting = read(`{"uuid": "${UUID}", "name": "x", "details": {}, "runs": 1.0, "delay": 5.0}`)
    expect(JSON.parse(write({ ...posting, runs: 2 }))).toMatchObject({ runs: 2, delay: 5 })
    const { delay: _, ...without } = posting
    expect(JSON.parse(write(without))).not.toHaveProperty('delay')
  })

  test('is what it was, for any that JSON can hold', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (details) => {
        // JSON has one zero.
        const plain = JSON.parse(JSON.stringify(details))
        const posting = read(`{"uuid": "${UUID}", "name": "x", "details": ${spaced(plain)}}`)
        expect(posting.details).toEqual(plain)
        expect(read(write(posting))).toEqual(posting)
      }),
    )
  })

  test('a time after which the job would expire is kept, and not applied', () => {
    const posting = read(`{"uuid": "${UUID}", "name": "x", "details": {}, "expiresAfter": 6e4}`)
    expect(posting).not.toHaveProperty('expiresAfter')
    expect(write({ ...posting, runs: 1 })).toContain('"expiresAfter":6e4')
    expect(write(read(write(posting)))).toBe(write(posting))
  })

  test.each(['', '{', '[]', '"{"', '{"a": NaN}', '{"uuid": "x\\u00"}'])('%s is none', (text) => {
    expect(() => read(text)).toThrow(InvalidPosting)
  })
})

test('what JSON cannot hold is refused, wherever it is, and only where JSON is written', () => {
  for (const [what, value] of Object.entries({
    Date: new Date(0),
    bytes: Uint8Array.of(1),
    bigint: 5n,
    finite: 1 / 0,
  })) {
    const posting = makePosting({ name: 'x', details: { store: { list: [value] } } })
    expect(() => encodeSharedPosting(posting, { limit: LIMIT })).toThrow(InvalidArgument)
    expect(() => encodeSharedPosting(posting, { limit: LIMIT })).toThrow(`details.store.list.0 is `)
    expect(() => encodeSharedPosting(posting, { limit: LIMIT })).toThrow(what)
    expect(() => ownBoard.encodePosting(posting, { limit: LIMIT })).not.toThrow()
  }
})

test('a field that would be the prototype of what is read is refused: its content would be unchecked', () => {
  const text = `{"uuid": "${UUID}", "name": "job", "__proto__": {"resources": {"exclusive": 5}}}`
  expect(() => read(text)).toThrow(InvalidPosting)
})
