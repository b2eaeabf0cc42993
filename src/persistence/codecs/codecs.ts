/** What can be done to results before they are kept: compressing, encrypting, or whatever somebody brings. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'

/** The place of an atom's record: a codec can bind what it writes to it, so that it means nothing anywhere else. */
export interface RecordPlace {
  /** The book's uuid. */
  readonly book: string
  /** The flow's uuid. */
  readonly flow: string
  /** The atom's name. */
  readonly atom: string
}

/**
 * Changes the bytes of what a task has returned, or thrown, on their way into a logbook and back.
 *
 * It works at once, without a promise: what is written in one order must be recorded in that order. Keys that are somewhere
 * else are fetched before the logbooks are opened.
 *
 * @example const codec: LogbookCodec = { name: 'rot13', encode: rotated, decode: rotated }
 */
export interface LogbookCodec {
  /** Kept with every record, so that old ones are read by what wrote them. Not to be changed. */
  readonly name: string
  /** @param place where the record is written */
  encode(bytes: Uint8Array, place: RecordPlace): Uint8Array
  /**
   * @param place where the record was read
   * @throws an error that says why it cannot: another key, say
   */
  decode(bytes: Uint8Array, place: RecordPlace): Uint8Array
  /** Whether a record that did not go through this codec, or one of `older`, is refused. False by default. */
  readonly require?: boolean
  /** Whether what it writes is secret: then conductors keep the texts of failures off the board, too. False by default. */
  readonly encrypts?: boolean
  /** Former formats of this codec, which are read and not written. */
  readonly older?: readonly LogbookCodec[]
}

const [STORED, DEFLATED] = [0, 1]

/** The most that one record may become when it is inflated, where nothing else is said. */
const MAX_INFLATED_BYTES = 64 * 1_024 * 1_024

/** How {@link compressed} is told what is too large. */
export interface CompressionOptions {
  /** The most bytes that one record may have when it is inflated; 64 MiB by default. What is larger is kept as it is. */
  readonly maxBytes?: number
}

/**
 * Makes large results smaller (deflate); small ones that would not get smaller are left as they are.
 *
 * @throws InvalidArgument for a limit that is not a whole number from 1
 */
export function compressed(options: CompressionOptions = {}): LogbookCodec {
  assertOptions(options, { maxBytes: true }, 'compressed')
  const { maxBytes = MAX_INFLATED_BYTES } = options
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 1)
    throw new InvalidArgument(`compressed: maxBytes must be a whole number from 1, got ${maxBytes}`)
  return {
    name: 'deflate',
    encode: (bytes) => {
      // It could be written, and never read again.
      if (bytes.length > maxBytes) return prependMark(STORED, bytes)
      const small = deflateRawSync(bytes)
      return small.length < bytes.length ? prependMark(DEFLATED, small) : prependMark(STORED, bytes)
    },
    decode: (bytes) => (bytes[0] === DEFLATED ? inflateWithin(bytes.subarray(1), maxBytes) : bytes.subarray(1)),
  }
}

/** A few hundred bytes can become gigabytes, which would end the process. */
function inflateWithin(bytes: Uint8Array, maxBytes: number): Uint8Array {
  try {
    return inflateRawSync(bytes, { maxOutputLength: maxBytes })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw cause
    throw new Error(`it has more than ${maxBytes} bytes when it is inflated, the maxBytes of compressed()`, { cause })
  }
}

/** The key of encrypted logbooks, those of before, and which records are believed. */
export interface EncryptionOptions {
  /** 32 bytes, or their base64: `openssl rand -base64 32`. */
  readonly key: string | Uint8Array
  /** Keys of before, for what they have written: nothing more is written with them. */
  readonly oldKeys?: readonly (string | Uint8Array)[]
  /**
   * Whether results that are not encrypted are refused; true by default. False is for logbooks that also hold records from
   * before there was a key: then whoever can write to the storage can make up results.
   */
  readonly require?: boolean
  /**
   * Whether records of the older format `aes-256-gcm` are read; true by default. They are not bound to their place: whoever
   * can write to the storage can put one in the place of another. False once there are none left.
   */
  readonly readUnbound?: boolean
}

const [KEY_BYTES, ID_BYTES, IV_BYTES, TAG_BYTES] = [32, 4, 12, 16]
const CIPHER = 'aes-256-gcm'
/** Records of the first format say nothing of their place. */
const UNBOUND_FORMAT = CIPHER
const BOUND_FORMAT = `${CIPHER}/2`

/**
 * Encrypts with AES-256-GCM, each record with an initialization vector of its own, and bound to its book, flow and atom: in
 * any other place it cannot be decrypted. A key is good for some thousand million records.
 *
 * @throws InvalidArgument, without the key, when that is not of 32 bytes
 * @example const codec = encrypted({ key: process.env.LOGBOOK_KEY, oldKeys: [process.env.LOGBOOK_KEY_OF_LAST_YEAR] })
 */
export function encrypted(options: EncryptionOptions): LogbookCodec {
  assertOptions(options, { key: true, oldKeys: true, require: true, readUnbound: true }, 'encrypted')
  const { require = true, readUnbound = true } = options
  for (const [name, value] of Object.entries({ require, readUnbound }))
    if (typeof value !== 'boolean') throw new InvalidArgument(`encrypted: ${name} must be true or false, got ${value}`)
  const keys = new KeyRing([options.key, ...(options.oldKeys ?? [])].map(parseKey))
  const bound: LogbookCodec = {
    name: BOUND_FORMAT,
    encode: (bytes, place) => keys.encrypt(bytes, encodePlace(place)),
    decode: (bytes, place) => keys.decrypt(bytes, encodePlace(place)),
    require,
    encrypts: true,
  }
  if (!readUnbound) return bound
  const unbound: LogbookCodec = {
    name: UNBOUND_FORMAT,
    encode: (bytes) => keys.encrypt(bytes),
    decode: (bytes) => keys.decrypt(bytes),
  }
  return { ...bound, older: [unbound] }
}

/** Injective: no two places give the same bytes, whatever is in their names. */
function encodePlace({ book, flow, atom }: RecordPlace): Uint8Array {
  return Buffer.from(JSON.stringify(['jobboard logbook', BOUND_FORMAT, book, flow, atom]))
}

/** The first key writes, all of them read. */
class KeyRing {
  readonly #newest: Buffer
  readonly #keys: ReadonlyMap<string, Buffer>

  constructor([newest, ...others]: readonly Buffer[]) {
    if (!newest) throw new InvalidArgument('encrypted: there must be a key')
    this.#newest = newest
    this.#keys = new Map([newest, ...others].map((each) => [toKeyId(each).toString('hex'), each]))
  }

  encrypt(bytes: Uint8Array, place?: Uint8Array): Uint8Array {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv(CIPHER, this.#newest, iv, { authTagLength: TAG_BYTES })
    if (place) cipher.setAAD(place)
    const secret = Buffer.concat([cipher.update(bytes), cipher.final()])
    return Buffer.concat([toKeyId(this.#newest), iv, cipher.getAuthTag(), secret])
  }

  decrypt(bytes: Uint8Array, place?: Uint8Array): Uint8Array {
    if (bytes.length < ID_BYTES + IV_BYTES + TAG_BYTES)
      throw new Error(`it is damaged: ${bytes.length} bytes are too few`)
    const [id, iv, tag] = [
      bytes.subarray(0, ID_BYTES),
      bytes.subarray(ID_BYTES, ID_BYTES + IV_BYTES),
      bytes.subarray(ID_BYTES + IV_BYTES, ID_BYTES + IV_BYTES + TAG_BYTES),
    ]
    const name = Buffer.from(id).toString('hex')
    const found = this.#keys.get(name)
    if (!found) {
      const given = [...this.#keys.keys()].join(', ')
      throw new Error(`it was encrypted with key ${name}, and the keys given are ${given}`)
    }
    // A shorter tag would be accepted otherwise, and can be guessed.
    const cipher = createDecipheriv(CIPHER, found, iv, { authTagLength: TAG_BYTES })
    cipher.setAuthTag(tag)
    if (place) cipher.setAAD(place)
    const open = cipher.update(bytes.subarray(ID_BYTES + IV_BYTES + TAG_BYTES))
    try {
      return Buffer.concat([open, cipher.final()])
    } catch (cause) {
      throw new Error('it was changed, or written for another place', { cause })
    }
  }
}

/** What names a key in records and errors, and does not tell it. */
function toKeyId(key: Buffer): Buffer {
  return createHash('sha256').update('jobboard key ').update(key).digest().subarray(0, ID_BYTES)
}

function parseKey(given: unknown): Buffer {
  const key = typeof given === 'string' ? Buffer.from(given, 'base64') : given
  if (key instanceof Uint8Array && key.length === KEY_BYTES) return Buffer.from(key)
  throw new InvalidArgument('encrypted: a key is 32 bytes, or their base64, as openssl rand -base64 32 makes them')
}

function prependMark(mark: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(mark), bytes])
}
