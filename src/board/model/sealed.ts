/**
 * Objects whose fields stay encoded until they are read. A decoded list of empty objects takes up to 60 times as much memory as its bytes,
 * and views and lists hold thousands of stores that are never read. A *sealed* object reads like the object from which it was made. A
 * *dropped* object has only some of the fields: code that needs other fields reads the record again. Users get neither of them: see {@link
 * unseal}.
 */
import { decode, encodePlain, weigh } from '../../core/codec.ts'
import { NotFound } from '../../core/errors.ts'

export type Fields = Readonly<Record<string, unknown>>

/** The memory below which a record is kept decoded, in bytes. */
const MIN_SEALED_MEMORY = 64 * 1_024

/** Returns whether a decoded record takes so much more memory than its bytes that its largest part should be sealed. */
export function isWorthSealing({ memory, bytes }: { readonly memory: number; readonly bytes: number }): boolean {
  return memory > MIN_SEALED_MEMORY && memory > 2 * bytes
}

/** The error for the reading of a field that was dropped. */
export class FieldDropped extends NotFound {
  override readonly name = 'NotFound'
}

/** The keys that the language and libraries read from every object: reading them from a dropped object is no error. */
const PROBED_KEYS: ReadonlySet<string> = new Set(['then', 'toJSON'])

class Seal implements ProxyHandler<Fields> {
  /** Absent where the fields were dropped. */
  readonly bytes: Uint8Array | undefined
  readonly kept: Fields
  /**
   * The object that was opened last, until the running code ends: a loop over its fields decodes it only once. A WeakRef for each object
   * would keep all objects that a loop over jobs opens until the loop ends.
   */
  static #last: { readonly seal: Seal; readonly fields: Fields } | undefined

  constructor(kept: Fields, bytes?: Uint8Array) {
    this.kept = kept
    this.bytes = bytes
  }

  /** Decodes the fields. `key` is the field that is read, for the error. @throws FieldDropped */
  open(key: string): Fields {
    if (Seal.#last?.seal === this) return Seal.#last.fields
    if (!this.bytes)
      throw new FieldDropped(
        `the field ${key} of the details was not kept in memory, because the board is long: read the job again, with await board.find(job.ref)`,
      )
    const fields = decode(this.bytes, 'msgpack') as Fields
    if (!Seal.#last) queueMicrotask(() => (Seal.#last = undefined))
    Seal.#last = { seal: this, fields }
    return fields
  }

  get(kept: Fields, key: string | symbol): unknown {
    if (typeof key === 'symbol' || Object.hasOwn(kept, key)) return Reflect.get(kept, key)
    const isProbed = !this.bytes && (PROBED_KEYS.has(key) || key in kept)
    return isProbed ? Reflect.get(kept, key) : this.open(key)[key]
  }

  has(kept: Fields, key: string | symbol): boolean {
    return typeof key === 'symbol' || Object.hasOwn(kept, key) ? Reflect.has(kept, key) : key in this.open(key)
  }

  ownKeys(): (string | symbol)[] {
    return Reflect.ownKeys(this.open('names'))
  }

  getOwnPropertyDescriptor(kept: Fields, key: string | symbol): PropertyDescriptor | undefined {
    const isKept = !this.bytes && (typeof key === 'symbol' || Object.hasOwn(kept, key))
    return Reflect.getOwnPropertyDescriptor(isKept ? kept : this.open(String(key)), key)
  }

  set(): boolean {
    return false
  }

  defineProperty(): boolean {
    return false
  }

  deleteProperty(): boolean {
    return false
  }
}

const SEALS = new WeakMap<object, Seal>()

/** The largest encoded size of a field that is kept, in bytes: more than the longest name. */
const MAX_KEPT_BYTES = 4 * 1_024

/** Copies the kept fields. A field that the object does not have is kept as undefined, so that reading it does not open the object. */
function pick(fields: Fields, kept: readonly string[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {}
  for (const key of kept) {
    const value = Object.hasOwn(fields, key) ? fields[key] : undefined
    if (encodePlain(value, 'msgpack').length <= MAX_KEPT_BYTES) picked[key] = value
  }
  return picked
}

/**
 * Returns an object with the same fields, all of them encoded except the kept ones, and the encoded size in bytes. The object cannot be
 * changed, and `structuredClone` refuses it: see {@link unseal}.
 */
export function sealFields<T extends Fields>(
  fields: T,
  { kept }: { readonly kept: readonly (string & keyof T)[] },
): { readonly sealed: T; readonly bytes: number } {
  const bytes = encodePlain(fields, 'msgpack')
  return { sealed: wrap<T>(new Seal(pick(fields, kept), bytes)), bytes: bytes.length }
}

/** The encoded size of a record below which its fields are never sealed, in bytes. */
const MIN_LARGE_BYTES = 1_024

/**
 * Returns the fields, sealed as by {@link sealFields} if they take much memory.
 *
 * @param options.recordBytes the encoded size of the whole record
 */
export function sealIfLarge<T extends Fields>(
  fields: T,
  { kept, recordBytes }: { readonly kept: readonly (string & keyof T)[]; readonly recordBytes: number },
): T {
  if (recordBytes < MIN_LARGE_BYTES) return fields
  const bytes = encodePlain(fields, 'msgpack')
  const memory = weigh(bytes, 'msgpack', Number.POSITIVE_INFINITY)
  return isWorthSealing({ memory, bytes: bytes.length }) ? wrap<T>(new Seal(pick(fields, kept), bytes)) : fields
}

/** Returns an object that has only the kept fields that are small: reading another field throws {@link FieldDropped}. */
export function dropFields<T extends Fields>(fields: T, { kept }: { readonly kept: readonly (string & keyof T)[] }): T {
  return wrap<T>(new Seal(pick(fields, kept)))
}

function wrap<T extends Fields>(seal: Seal): T {
  const wrapped = new Proxy(seal.kept, seal)
  SEALS.set(wrapped, seal)
  return wrapped as T
}

/** Returns whether fields of the object were dropped. */
export function isDropped(fields: object): boolean {
  const seal = SEALS.get(fields)
  return seal !== undefined && !seal.bytes
}

/** Returns whether the object was sealed, or fields of it were dropped. */
export function isSealed(fields: object): boolean {
  return SEALS.has(fields)
}

/**
 * Returns the fields as users get them: a plain object, which can be cloned and changed. Each field of a sealed object is decoded when it
 * is first read, and kept decoded from then on. For a dropped object, the result has only the kept fields. An object that was never sealed
 * is returned as it is.
 */
export function unseal<T extends Fields>(fields: T): T {
  const seal = SEALS.get(fields)
  if (!seal) return fields
  const { bytes, kept } = seal
  const present = Object.entries(kept).filter(([, value]) => value !== undefined)
  const copy: Record<string, unknown> = structuredClone(Object.fromEntries(present))
  if (!bytes) return copy as T
  for (const key of Object.keys(fields)) {
    if (Object.hasOwn(copy, key)) continue
    const keep = (value: unknown) => {
      Object.defineProperty(copy, key, { value, enumerable: true, configurable: true, writable: true })
      return value
    }
    const read = () => keep((decode(bytes, 'msgpack') as T)[key])
    Object.defineProperty(copy, key, { get: read, set: keep, enumerable: true, configurable: true })
  }
  return copy as T
}
