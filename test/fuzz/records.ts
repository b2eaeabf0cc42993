/** Bytes that somebody could have written where a record would be: odd values, records with odd fields, records with flipped bytes. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { type Encoding, encodePlain } from '../../src/core/codec.ts'
import { jsonPoison, msgpackPoison, nested, PLACE, postingRecord, references, withRaw } from '../support/poison.ts'
import type { Random } from '../support/random.ts'

/** What the conductor beside the records can run: a posting that is not claimed shows less. */
export const FLOW = 'innocent'

export interface RecordMaker {
  /** Bytes in the place of a posting. */
  posting(): Uint8Array
  /** The record with some parts that are odd, or another value in its place. */
  altered(real: Readonly<Record<string, unknown>>): unknown
  /** Bytes in the place of this record. */
  record(real: Readonly<Record<string, unknown>>): Uint8Array
  /** A value in the place of any other. */
  value(): unknown
  /** The bytes with some of them changed, or without their end. */
  damaged(bytes: Uint8Array): Uint8Array
}

/** Makes bytes by chance; the same seed makes the same. */
export function recordMaker(random: Random, encoding: Encoding): RecordMaker {
  const poison = encoding === 'json' ? jsonPoison() : msgpackPoison()

  const anything =
    encoding === 'json' ? fc.jsonValue() : fc.anything({ withBigInt: true, withDate: true, withMap: true })
  const others = fc.sample(anything, { seed: random.between(0, 2 ** 31 - 1), numRuns: ANY_VALUES }).filter(isEncodable)

  const odd = (depth = 0): unknown => {
    const leaf = () =>
      // A copy: what is put into it later must not make a circle.
      structuredClone(
        random.pick<unknown>([
          ...(random.next() < 0.3 ? others : []),
          ...[{ toString: 1, valueOf: 1 }, [null], [[]], {}, 1e300, -1e300, 8.64e15 + 1, 1e15, -0],
          ...[
            null,
            true,
            0,
            -1,
            1.5,
            1e308,
            Number.MAX_SAFE_INTEGER,
            2 ** 31,
            '',
            ' ',
            '\u0000',
            '\ud800',
            'x'.repeat(3_000),
          ],
          ...[
            'VERY_HIGH',
            'flow',
            randomUUID(),
            '__proto__',
            'constructor',
            nested(random.between(2, 99)),
            ' \n'.repeat(5_000),
          ],
          ...(encoding === 'json'
            ? []
            : [
                ...[new Date(random.between(-1e9, 1e9)), new Uint8Array(3), 2n ** 63n, 2n ** 53n, -(2n ** 60n)],
                ...[
                  Number.NaN,
                  Number.POSITIVE_INFINITY,
                  Number.NEGATIVE_INFINITY,
                  new Date(8.64e15),
                  new Map([[1, 'x']]),
                ],
              ]),
        ]),
      )
    if (depth > 2 || random.next() < 0.6) return leaf()
    const parts = Array.from({ length: random.between(0, 5) }, () => odd(depth + 1))
    return random.next() < 0.5 ? parts : Object.fromEntries(parts.map((part, index) => [FIELDS[index] ?? 'x', part]))
  }

  const encoded = (value: unknown): Uint8Array =>
    encoding === 'json' ? Buffer.from(JSON.stringify(value) ?? '') : encodePlain(value, encoding)

  const altered = (real: Readonly<Record<string, unknown>>): Record<string, unknown> => {
    const copy: Record<string, unknown> = structuredClone({ ...real })
    const fields = [...Object.keys(real), ...FIELDS]
    for (let changes = random.between(1, 3); changes > 0; changes -= 1) {
      const part = partOf(copy, random)
      part[random.pick(part === copy ? fields : [...Object.keys(part), 'x'])] = odd()
    }
    return copy
  }

  const mutated = (real: Readonly<Record<string, unknown>>): Uint8Array => {
    const kind = random.between(0, 4)
    if (kind === 0) return encoded(odd())
    const copy = altered(real)
    if (kind === 1 && encoding === 'msgpack') {
      const details = { flow: FLOW, store: { bad: [PLACE] } }
      const where = random.next() < 0.5 ? { details } : { [random.pick([...Object.keys(real), ...FIELDS])]: [PLACE] }
      const bytes = withRaw({ ...real, ...where }, references(random.between(2, 12)))
      return random.next() < 0.5 ? bytes : Buffer.concat([bytes, Buffer.from([0])])
    }
    if (kind <= 2) return encoded(copy)
    return damaged(encoded(kind === 3 ? real : copy))
  }

  const damaged = (whole: Uint8Array): Uint8Array => {
    const bytes = Uint8Array.from(whole)
    for (let flips = random.between(1, 4); flips > 0; flips -= 1)
      bytes[random.between(0, bytes.length - 1)] = random.between(0, 255)
    return random.next() < 0.2 ? bytes.subarray(0, random.between(0, bytes.length)) : bytes
  }

  return {
    posting: () => {
      if (random.next() < 0.2) return random.pick(poison)[1]
      const attempt = {
        who: 'somebody',
        at: new Date(0).toISOString(),
        ended: random.pick(['failed', 'returned', 'x']),
      }
      const attempts = Array.from({ length: random.between(0, 30) }, () => attempt)
      return mutated(
        postingRecord({
          details: { flow: FLOW, store: {} },
          attempts,
          runs: random.between(0, 30),
          key: randomUUID(),
          book: { uuid: randomUUID(), name: 'b' },
        }),
      )
    },
    altered: (real) => (random.next() < 0.1 ? odd() : altered(real)),
    record: mutated,
    value: odd,
    damaged,
  }
}

/** The number of values of any kind from which a maker picks. */
const ANY_VALUES = 300

function isEncodable(value: unknown): boolean {
  try {
    return value !== undefined && encodePlain(value, 'msgpack').length < MAX_VALUE_BYTES
  } catch {
    return false
  }
}

const MAX_VALUE_BYTES = 10_000

/** Returns the record itself or, as often, an object or a list anywhere within it. */
function partOf(record: Record<string, unknown>, random: Random): Record<string, unknown> {
  let part = record
  while (random.next() < 0.6) {
    const within = Object.values(part).filter(isContainer)
    if (within.length === 0) break
    part = random.pick(within)
  }
  return part
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return Array.isArray(value) || (typeof value === 'object' && value?.constructor === Object)
}

const FIELDS = [
  'details',
  'attempts',
  'resources',
  'backOff',
  'book',
  'failure',
  'metadata',
  'delay',
  'deadline',
  'onOwnerLost',
]
