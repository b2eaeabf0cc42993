/** Records that no release of this library writes, as anybody can write them who has access to the server. */
import { randomUUID } from 'node:crypto'
import { encodePlain } from '../../src/core/codec.ts'

const PLACEHOLDER = 'placeholder'

/** Encodes the record, with `raw` in the place where the record has {@link PLACE}. */
export function withRaw(record: unknown, raw: Uint8Array): Uint8Array {
  const bytes = Buffer.from(encodePlain(record, 'msgpack'))
  const at = bytes.indexOf(PLACEHOLDER) - 1
  return Buffer.concat([bytes.subarray(0, at), raw, bytes.subarray(at + 1 + PLACEHOLDER.length)])
}

/** Where {@link withRaw} puts the raw bytes. */
export const PLACE = PLACEHOLDER

/** A posting like those that boards write, with other fields. */
export function postingRecord(fields: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    ...{ uuid: randomUUID(), name: 'poison', priority: 'VERY_HIGH', size: 'medium', maxAttempts: 3 },
    ...{ format: 1, runs: 0, attempts: [], details: { flow: 'flow', store: {} } },
    ...fields,
  }
}

/** References that each name the list before ten times: unfolded, a list of 10^levels items. */
export function references(levels: number): Uint8Array {
  const identified = (id: number) => Buffer.from([0xd6, 0x69, 0, 0, 0, id])
  const reference = (id: number) => Buffer.from([0xd6, 0x70, 0, 0, 0, id])
  let inner = Buffer.concat([identified(1), Buffer.from([0x90])])
  for (let level = 2; level <= levels; level += 1) {
    const again = Array.from({ length: 9 }, () => reference(level - 1))
    inner = Buffer.concat([identified(level), Buffer.from([0x9a]), inner, ...again])
  }
  return inner
}

/** A list that contains itself. */
export const CYCLE: Uint8Array = Buffer.from([0xd6, 0x69, 0, 0, 0, 1, 0x91, 0xd6, 0x70, 0, 0, 0, 1])

/** An integer of so many bytes. */
export function hugeInteger(length: number): Uint8Array {
  const head = Buffer.from([0xc9, 0, 0, 0, 0, 0x42])
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, Buffer.alloc(length, 0x7f)])
}

/** Values that msgpack can carry in extensions, and that are no plain data. */
export const EXTENSIONS: readonly (readonly [string, Uint8Array])[] = [
  ['a Set', Buffer.from([0xd4, 0x73, 0, 0x91, 1])],
  ['a RegExp', Buffer.from([0xd4, 0x78, 0, 0x92, 0xa1, 0x61, 0xa0])],
  ['an Error', Buffer.from([0xd4, 0x65, 0, 0x93, 0xa5, ...Buffer.from('Error'), 0xa1, 0x61, 0xc0])],
  ['a DataView', Buffer.from([0xc7, 2, 0x74, 0x11, 0])],
  ['the byte that nothing uses', Buffer.from([0xc1])],
  ['a structure of its own', Buffer.from([0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61, 1])],
  ['bundled texts', Buffer.from([0xd6, 0x62, 0, 0, 0, 1, 0xc0])],
  ['an invalid date', Buffer.from([0xd4, 0xff, 0xff])],
  ['a date after the last one', Buffer.from([0xc7, 12, 0xff, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0, 0, 0, 0])],
  ['an integer of 17 bytes', hugeInteger(17)],
]

/** A list of so many empty objects, of a byte each. */
export function emptyObjects(count: number): Uint8Array {
  const head = Buffer.from([0xdd, 0, 0, 0, 0])
  head.writeUInt32BE(count, 1)
  return Buffer.concat([head, Buffer.alloc(count, 0x80)])
}

/** Lists within lists. */
export function nested(depth: number): unknown {
  let value: unknown = []
  for (let level = 1; level < depth; level += 1) value = [value]
  return value
}

/** As a board would see it: what it is, and its bytes. */
export type Poison = readonly [what: string, bytes: Uint8Array]

const NOBODY = { who: 'nobody', at: new Date(0).toISOString() }
const LONG = 'n'.repeat(1_025)

/** Postings that nobody may claim, and that must not do harm to others. JSON can carry these, too. */
function shapes(): [string, Record<string, unknown>][] {
  const returned = { ...NOBODY, ended: 'returned' }
  return [
    ['thousands of attempts', { attempts: [...Array.from({ length: 4_000 }, () => NOBODY), returned] }],
    ['a flow that is nested deeply', { details: { flow: nested(90), store: {} } }],
    ['a flow that is no text', { details: { flow: 7, store: {} } }],
    ['a version that is no text', { details: { flow: 'flow', version: { major: 1 }, store: {} } }],
    ['details that are nested too deeply', { details: { flow: 'flow', store: { deep: nested(150) } } }],
    ['a name that is too long', { name: LONG }],
    ['a flow with a name that is too long', { details: { flow: LONG } }],
    ['a key that is too long', { key: LONG }],
    ['a resource with a name that is too long', { resources: { exclusive: [LONG] } }],
    ['a book with a name that is too long', { book: { uuid: randomUUID(), name: LONG } }],
    ['an owner with a name that is too long', { attempts: [{ ...returned, who: LONG }] }],
    ['the last number of a run', { runs: Number.MAX_SAFE_INTEGER }],
    [
      'a great many empty lists',
      { details: { flow: 'flow', store: { list: Array.from({ length: 350_000 }, () => []) } } },
    ],
  ]
}

/** Postings that JSON can carry. */
export function jsonPoison(): Poison[] {
  return shapes()
    .filter(([what]) => what !== 'a great many empty lists')
    .map(([what, fields]) => [what, Buffer.from(JSON.stringify(postingRecord(fields)))])
}

/** Postings that msgpack can carry. */
export function msgpackPoison(): Poison[] {
  const inStore = postingRecord({ details: { flow: 'flow', store: { bad: PLACE } } })
  return [
    ...shapes().map(([what, fields]): Poison => [what, encodePlain(postingRecord(fields), 'msgpack')]),
    ['250 KB of empty objects', withRaw({ ...inStore, uuid: randomUUID() }, emptyObjects(250_000))],
    ['references', withRaw({ ...inStore, uuid: randomUUID() }, references(4))],
    ['a list that contains itself', withRaw({ ...inStore, uuid: randomUUID() }, CYCLE)],
    [
      'a byte behind its end',
      Buffer.concat([withRaw({ ...inStore, uuid: randomUUID() }, references(4)), Buffer.from([0])]),
    ],
    ['a flow that is a huge integer', withRaw(postingRecord({ details: { flow: PLACE } }), hugeInteger(17))],
    ...EXTENSIONS.map(([what, raw]): Poison => [what, withRaw({ ...inStore, uuid: randomUUID() }, raw)]),
  ]
}
