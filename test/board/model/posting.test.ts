import fc from 'fast-check'
import { Packr } from 'msgpackr'
import { describe, expect } from 'vitest'
import { makePosting } from '../../../src/board/model/posting/post-options.ts'
import { moveTo } from '../../../src/board/model/posting/posting.ts'
import { decodePosting, encodeLife, encodePosting } from '../../../src/board/model/posting/posting-codec.ts'
import { queueOf } from '../../../src/board/model/queues.ts'
import { encode } from '../../../src/core/codec.ts'
import { InvalidPosting, PayloadTooLarge } from '../../../src/core/errors.ts'
import { usual as test, variant } from '../../variant.ts'

const uuid = '00000000-0000-7000-8000-000000000000'
const posting = makePosting({ name: 'job', details: { flow: 'flow', store: { at: new Date(5) } }, uuid })

/** A posting, or InvalidPosting; anything else is thrown on. */
function read(bytes: Uint8Array, encoding: 'msgpack' | 'json'): unknown {
  try {
    return decodePosting(bytes, encoding)
  } catch (error) {
    if (error instanceof InvalidPosting) return error
    throw error
  }
}

describe('half of a surrogate pair, of which another character is made when it is stored', () => {
  const half = 'Invoice 😀'.slice(0, 9)
  const details = { flow: 'flow' }

  test.each<[string, Parameters<typeof makePosting>[0]]>([
    ['name', { name: half, details }],
    ['details.flow', { name: 'job', details: { flow: half } }],
    ['details.version', { name: 'job', details: { flow: 'flow', version: half } }],
    ['key', { name: 'job', details, key: half }],
    ['key', { name: 'job', details, key: { name: half, for: '1m' } }],
    ['resources.exclusive', { name: 'job', details, resources: { exclusive: ['fine', half] } }],
    ['resources.shared', { name: 'job', details, resources: { shared: [half] } }],
  ])('is refused in %s', (field, request) => {
    expect(() => makePosting(request)).toThrow(new RegExp(`${field}.* has half of a surrogate pair`))
  })

  test('is refused in a name that another program has written as JSON', () => {
    const whole = encodePosting(posting, { encoding: 'json', limit: 10_000 })
    const bytes = Buffer.from(Buffer.from(whole).toString().replace('"name":"job"', '"name":"job\\ud83d"'))
    expect(read(bytes, 'json')).toBeInstanceOf(InvalidPosting)
  })

  test.each<[string, object]>([
    ['store.label', { label: half }],
    ['store.list.1', { list: ['fine', half] }],
    ['store.\ufffd', { '\ud800': 1 }],
  ])('is refused in the store, at %s', (place, store) => {
    expect(() => makePosting({ name: 'job', details: { flow: 'flow', store } })).toThrow(place)
  })
})

describe('decoding', () => {
  const encodings = ['msgpack', 'json'] as const

  test.each(encodings)('never throws anything but InvalidPosting, whatever the bytes are (%s)', (encoding) => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void read(bytes, encoding)),
      { numRuns: 5_000 },
    )
  })

  test.each(encodings)('nor for a posting with a few bytes changed (%s)', (encoding) => {
    const whole = encodePosting(posting, { encoding, limit: 10_000 })
    const change = fc.record({ at: fc.nat({ max: whole.length - 1 }), to: fc.nat({ max: 255 }) })
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), fc.nat({ max: whole.length }), (changes, cut) => {
        const bytes = Uint8Array.from(whole)
        for (const { at, to } of changes) bytes[at] = to
        read(bytes, encoding)
        read(bytes.subarray(0, cut), encoding)
      }),
      { numRuns: 5_000 },
    )
  })

  const anything = fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true })

  variant('nor for a record whose fields are anything', () => {
    const packr = new Packr({ useRecords: false, moreTypes: true, largeBigIntToString: true })
    const fields = [
      'uuid',
      'name',
      'details',
      'book',
      'priority',
      'queue',
      'size',
      'maxAttempts',
      'format',
      'runs',
      'attempts',
    ]
    const changed = fc.tuple(fc.constantFrom(...fields), anything)
    fc.assert(
      fc.property(fc.array(changed, { minLength: 1, maxLength: 3 }), (changes) => {
        const record = { ...posting, ...Object.fromEntries(changes) }
        let bytes: Uint8Array
        try {
          bytes = packr.pack(record)
        } catch {
          return
        }
        read(bytes, 'msgpack')
      }),
      { numRuns: 5_000 },
    )
  })

  test.each([
    ['uuid', 5n],
    ['uuid', 'x'],
    ['uuid', undefined],
    ['name', ''],
    ['name', 5],
    ['details', []],
    ['details', { store: [] }],
    ['priority', 2n ** 60n],
    ['priority', 'URGENT'],
    ['size', 'huge'],
    ['queue', 'a*'],
    ['queue', 7],
    ['format', 99],
    ['format', { toString: 1 }],
    ['format', -1],
    ['format', Number.NaN],
    ['runs', -1],
    ['maxAttempts', 1_000_001],
    ['attempts', {}],
    ['book', { uuid, name: 1 }],
  ])('refuses %s: %s', (field, value) => {
    expect(() => decodePosting(encode({ ...posting, [field]: value }, 'msgpack'), 'msgpack')).toThrow(InvalidPosting)
  })

  test.each([
    ['small', 'small'],
    ['medium', undefined],
    ['large', 'large'],
  ])(
    'reads the size %s of a former release as queue %s, also where a claim of it has written the life',
    (size, queue) => {
      const stored = encode({ ...posting, format: 1, size }, 'msgpack')
      expect(decodePosting(stored, 'msgpack').queue).toBe(queue)
      const life = encode({ runs: 1, attempts: [], size: 'large' }, 'msgpack')
      expect(decodePosting(stored, 'msgpack', life).queue).toBe('large')
      const moved = encodeLife(moveTo(decodePosting(stored, 'msgpack'), 'default'), 'msgpack')
      expect(queueOf(decodePosting(stored, 'msgpack', moved))).toBe('default')
    },
  )

  test('reads what TaskFlow writes, and keeps what neither knows', () => {
    const theirs = {
      uuid,
      name: 'job',
      priority: 'high',
      details: { flow_uuid: 'x' },
      book: { uuid, name: 'b' },
      more: [1],
    }
    const read = decodePosting(encode(theirs, 'json'), 'json')
    expect(read).toEqual({
      ...theirs,
      priority: 'HIGH',
      format: 1,
      runs: 0,
      attempts: [],
      maxAttempts: 3,
    })
  })

  test('does not print what it refuses', () => {
    const bytes = encode({ ...posting, name: '', details: { store: { password: 'hunter2' } } }, 'msgpack')
    expect(() => decodePosting(bytes, 'msgpack')).not.toThrow(/hunter2/)
  })
})

describe('encoding', () => {
  const withoutProto = (store: object) => !JSON.stringify(store).includes('"__proto__"')
  const plain = fc.jsonValue({ maxDepth: 4 }).filter((value) => JSON.stringify(value).length < 5_000)

  test.each(['msgpack', 'json'] as const)('and decoding gives the same back (%s)', (encoding) => {
    fc.assert(
      // A key __proto__ is refused: it would come back as another name.
      fc.property(fc.dictionary(fc.string(), plain).filter(withoutProto), (store) => {
        const made = makePosting({ name: 'job', details: { store } })
        expect(decodePosting(encodePosting(made, { encoding, limit: 1_000_000 }), encoding)).toEqual(made)
      }),
    )
  })

  test('stops at the limit exactly', () => {
    const { length } = encodePosting(posting, { encoding: 'msgpack', limit: Number.POSITIVE_INFINITY })
    expect(encodePosting(posting, { encoding: 'msgpack', limit: length })).toHaveLength(length)
    expect(() => encodePosting(posting, { encoding: 'msgpack', limit: length - 1 })).toThrow(PayloadTooLarge)
  })
})
