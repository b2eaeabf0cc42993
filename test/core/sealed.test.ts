/** Sealed objects: they are read as the object that they were made of, and dropped ones say what is missing. */
import { expect, test } from 'vitest'
import { dropFields, isDropped, isSealed, sealFields, sealIfLarge, unseal } from '../../src/board/model/sealed.ts'
import { decode, encodePlain } from '../../src/core/codec.ts'
import { NotFound } from '../../src/core/errors.ts'

const FIELDS = { flow: 'resize', store: { list: [{}, {}], at: new Date(5) }, note: 'x' }
const KEPT = { kept: ['flow', 'version'] } as const

function seal() {
  return sealFields<Record<string, unknown>>(FIELDS, KEPT).sealed
}

test('a sealed object is read, spread and encoded as the object that it was made of', () => {
  const sealed = seal()
  expect(sealed).toEqual(FIELDS)
  expect({ ...sealed }).toEqual(FIELDS)
  expect('note' in sealed && !('version' in sealed && sealed['version'] !== undefined)).toBe(true)
  expect(JSON.parse(JSON.stringify(sealed))).toEqual(JSON.parse(JSON.stringify(FIELDS)))
  expect(decode(encodePlain({ sealed }, 'msgpack'), 'msgpack')).toEqual({ sealed: FIELDS })
})

test('a sealed object cannot be changed, and its copy can', () => {
  const sealed = seal()
  expect(() => Object.assign(sealed, { note: 'y' })).toThrow(TypeError)
  const copy = unseal(sealed)
  expect(structuredClone(copy)).toEqual(FIELDS)
  expect({ ...copy }).toStrictEqual(FIELDS)
  Object.assign(copy, { note: 'y' })
  Object.assign(Object(copy['store']), { more: 1 })
  expect(copy).toEqual({ ...FIELDS, note: 'y', store: { ...FIELDS.store, more: 1 } })
  expect(structuredClone(copy)).toEqual(copy)
  expect(sealed).toEqual(FIELDS)
})

test('a dropped object has its kept fields, and refuses the others by name', () => {
  const dropped = dropFields<Record<string, unknown>>(FIELDS, KEPT)
  expect([dropped['flow'], dropped['version'], isDropped(dropped)]).toEqual(['resize', undefined, true])
  expect(() => dropped['store']).toThrow(NotFound)
  expect(() => dropped['store']).toThrow(/store .* board\.find/)
  const readers = [
    () => 'store' in dropped,
    () => Object.hasOwn(dropped, 'store'),
    () => ({ ...dropped }),
    () => JSON.stringify(dropped),
  ]
  for (const read of readers) expect(read).toThrow(NotFound)
  expect(unseal(dropped)).toStrictEqual({ flow: 'resize' })
})

test('a sealed field with the name of a method of objects is read as it is', () => {
  const fields: Record<string, unknown> = { constructor: 1, toString: [{}], hasOwnProperty: 'x' }
  const { sealed } = sealFields(fields, { kept: [] })
  expect([sealed['constructor'], sealed['toString'], sealed['hasOwnProperty']]).toEqual([1, [{}], 'x'])
})

test('only what takes much more memory than its bytes is sealed', () => {
  const options = { kept: [], recordBytes: 100_000 } as const
  expect(isSealed(sealIfLarge({ text: 'x'.repeat(100_000) }, options))).toBe(false)
  expect(isSealed(sealIfLarge({ list: Array.from({ length: 100 }, () => ({})) }, options))).toBe(false)
  expect(isSealed(sealIfLarge({ list: Array.from({ length: 10_000 }, () => ({})) }, options))).toBe(true)
})
