/** Records of logbooks that others have damaged: refused by one error that concerns only them. */
import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { StorageFailure } from '../../src/core/errors.ts'
import { checkAtom, checkBook, checkFlowWithAtoms, checkTransition } from '../../src/persistence/checked-records.ts'
import { decodeBook, decodeFlow, encodeFrame } from '../../src/persistence/directory/records.ts'
import { createFlowDetail } from '../../src/persistence/flow-record.ts'
import { CYCLE } from '../support/poison.ts'

const at = new Date(0)
const BOOK = { uuid: 'a', name: 'b', meta: {}, createdAt: at, updatedAt: at }
const FLOW = createFlowDetail({ book: BOOK, flow: { uuid: 'f', name: 'flow', version: '1.0' } }, at)
const ATOM = {
  ...{ name: 'atom', kind: 'task', version: '1.0', state: 'SUCCESS', intention: 'EXECUTE', meta: {}, updatedAt: at },
  ...{ createdAt: at, states: [{ state: 'SUCCESS', at, run: 1 }], result: { any: 'thing' } },
  ...{ progressMessage: 'page 3', checkpoint: { value: { row: 7 }, at } },
}
const ODD: unknown[] = [null, 5, 'text', [], true, new Date(Number.NaN), { odd: 1 }, new Uint8Array(1)]

describe.each<[string, Record<string, unknown>, (value: unknown) => unknown, readonly string[]]>([
  ['a book', { ...BOOK }, (value) => checkBook(value, 'it'), ['meta', 'createdAt', 'updatedAt']],
  [
    'a flow',
    { ...FLOW },
    (value) => checkFlowWithAtoms(value, 'it'),
    ['version', 'state', 'meta', 'run', 'claim', 'atoms', 'states', 'createdAt', 'updatedAt'],
  ],
  [
    'an atom',
    ATOM,
    (value) => checkAtom(value, 'it'),
    ['name', 'kind', 'state', 'intention', 'updatedAt', 'states', 'progressMessage', 'checkpoint'],
  ],
  ['a transition', { at, state: 'RUNNING', atoms: [ATOM] }, (value) => checkTransition(value, 'it'), ['at', 'atoms']],
])('%s', (_, record, check, fields) => {
  test('is read as it was written', () => {
    expect(check(record)).toEqual(record)
  })

  test('is damaged where a field is anything else', () => {
    for (const odd of ODD) {
      expect(() => check(odd)).toThrow(StorageFailure)
      for (const field of fields) {
        const same = JSON.stringify(odd) === JSON.stringify(record[field])
        const fits =
          same ||
          (field === 'meta' && Object(odd).odd) ||
          (typeof record[field] === 'string' &&
            typeof odd === 'string' &&
            !['state', 'kind', 'intention'].includes(field)) ||
          (field === 'run' && odd === 5) ||
          (['atoms', 'states'].includes(field) && Array.isArray(odd))
        if (!fits) expect(() => check({ ...record, [field]: odd }), `${field}: ${String(odd)}`).toThrow(/it is damaged/)
      }
    }
  })
})

test('failures within an atom are cut to a shape that can be shown', () => {
  const atom = checkAtom({ ...ATOM, failure: { causes: 'abc' }, revertFailure: 5 }, 'it')
  expect(atom.failure).toEqual({ name: 'Error', message: 'a message that cannot be read' })
  expect(atom.revertFailure?.name).toBe('Error')
})

test('a file whose checksum is right and whose content is not is damaged', () => {
  const bytes = Buffer.from(encodeFrame({ format: 1, book: BOOK }))
  expect(decodeBook(bytes, 'file')).toEqual(BOOK)
  for (const content of [CYCLE, Buffer.from([0xc1])]) {
    expect(() => decodeFlow(framed(content), 'file')).toThrow(StorageFailure)
    expect(() => decodeBook(framed(content), 'file')).toThrow('file is damaged')
  }
})

/** Frames bytes as they are. */
function framed(payload: Uint8Array): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(payload.length, 0)
  head.writeUInt32BE(crc32(payload), 4)
  return Buffer.concat([head, payload])
}

test.each([new Date(-1e14), new Date(8.64e15)])('a date that Postgres would not take back (%s) is damaged', (date) => {
  expect(() => checkBook({ ...BOOK, createdAt: date }, 'it')).toThrow(/createdAt is not a date from year 1 to 9999/)
})
