/** Codecs for results: compression, encryption, and the interface of custom codecs. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'

/** The place of an atom's record: a codec can bind the record to it, so that it is invalid in any other place. */
export interface RecordPlace {
  /** The UUID of the book. */
  readonly book: string
  /** The UUID of the flow. */
  readonly flow: string
  /** The name of the atom. */
  readonly atom: string
}

/**
 * Changes the bytes of a task's results and errors on their way into a logbook and back.
 *
 * It is synchronous: writes must be recorded in the order of their calls. Keys that are stored elsewhere must be
 * fetched before the logbooks are opened.
 *
 * @example const codec: LogbookCodec = { name: 'rot13', encode: rotated, decode: rotated }
 */
export interface LogbookCodec {
  /** The name, stored with every record, so that the right codec reads it later. It must not change. */
  readonly name: string
  /** Encodes the bytes of a record. @param place the place where the record is written */
  encode(bytes: Uint8Array, place: RecordPlace): Uint8Array
  /**
   * Decodes the bytes of a record.
   *
   * @param place the place where the record was read
   * @throws an error with the reason, such as another key
   */
  decode(bytes: Uint8Array, place: RecordPlace): Uint8Array
  /** Whether a record that did not go through this codec, or one of `older`, is refused. False by default. */
  readonly require?: boolean
  /**
   * Whether the encoded bytes are secret: conductors then keep the texts of failures off the board, too. False by
   * default.
   */
  readonly encrypts?: boolean
  /** Former formats of this codec, which are read but not written. */
  readonly older?: readonly LogbookCodec[]
}

const [STORED, DEFLATED] = [0, 1]

/** The default limit for the size of an inflated record. */
const MAX_INFLATED_BYTES = 64 * 1_024 * 1_024

/** The options of {@link compressed}. */
export interface CompressionOptions {
  /** The size limit of an inflated record; 64 MiB by default. A larger record is stored uncompressed. */
  readonly maxBytes?: number
}

/**
 * Compresses large results (deflate); results that would not get smaller are stored as they are.
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
      // A compressed record above the limit could not be read again.
      if (bytes.length > maxBytes) return prependMark(STORED, bytes)
      const small = deflateRawSync(bytes)
      return small.length < bytes.length ? prependMark(DEFLATED, small) : prependMark(STORED, bytes)
    },
    decode: (bytes) => (bytes[0] === DEFLATED ? inflateWithin(bytes.subarray(1), maxBytes) : bytes.subarray(1)),
  }
}

/** Inflates up to the limit: a few hundred bytes can become gigabytes, which would end the process. */
function inflateWithin(bytes: Uint8Array, maxBytes: number): Uint8Array {
  try {
    return inflateRawSync(bytes, { maxOutputLength: maxBytes })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw cause
    throw new Error(`it has more than ${maxBytes} bytes when it is inflated, the maxBytes of compressed()`, { cause })
  }
}

/** The keys of encrypted logbooks, and the records that are accepted. */
export interface EncryptionOptions {
  /** The key: 32 bytes, or their base64, as from `openssl rand -base64 32`. */
  readonly key: string | Uint8Array
  /** Former keys, for reading only. */
  readonly oldKeys?: readonly (string | Uint8Array)[]
  /**
   * Whether unencrypted results are refused; true by default. False is for logbooks that also contain records from
   * before the encryption: then a user who can write to the storage can forge results.
   */
  readonly require?: boolean
  /**
   * Whether records of the older format `aes-256-gcm` are read; true by default. They are not bound to their place: a
   * user who can write to the storage can exchange them. Set it to false when no such record is left.
   */
  readonly readUnbound?: boolean
}

const [KEY_BYTES, ID_BYTES, IV_BYTES, TAG_BYTES] = [32, 4, 12, 16]
const CIPHER = 'aes-256-gcm'
/** The name of the first format, whose records are not bound to their place. */
const UNBOUND_FORMAT = CIPHER
const BOUND_FORMAT = `${CIPHER}/2`

/**
 * Encrypts with AES-256-GCM, each record with its own initialization vector, and bound to its book, flow and atom: in
 * any other place it cannot be decrypted. A key is good for several thousand million records.
 *
 * @throws InvalidArgument, without the key, when it does not have 32 bytes
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

/** Encodes a place. The encoding is injective: two places never give the same bytes, whatever their names contain. */
function encodePlace({ book, flow, atom }: RecordPlace): Uint8Array {
  return Buffer.from(JSON.stringify(['jobboard logbook', BOUND_FORMAT, book, flow, atom]))
}

/** A set of keys: the first key encrypts, all of them decrypt. */
class KeyRing {
  readonly #newest: Buffer
  readonly #keys: ReadonlyMap<string, Buffer>

  constructor([newest, ...others]: readonly Buffer[]) {
    if (!newest) throw new InvalidArgument('encrypted: key is missing')
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
      const names = [...this.#keys.keys()].join(', ')
      throw new Error(`it was encrypted with key ${name}, and the keys given are ${names}`)
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

/** Returns the identifier of a key for records and errors, which does not reveal the key. */
function toKeyId(key: Buffer): Buffer {
  return createHash('sha256').update('jobboard key ').update(key).digest().subarray(0, ID_BYTES)
}

function parseKey(value: unknown): Buffer {
  const key = typeof value === 'string' ? Buffer.from(value, 'base64') : value
  if (key instanceof Uint8Array && key.length === KEY_BYTES) return Buffer.from(key)
  throw new InvalidArgument('encrypted: a key must be 32 bytes, or their base64, as from openssl rand -base64 32')
}

function prependMark(mark: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(mark), bytes])
}
