/** What can be done to results before they are kept: compressing, encrypting, or whatever somebody brings. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { InvalidArgument } from '../core/errors.ts'
import { assertOptions } from '../core/options.ts'

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
  encode(bytes: Uint8Array): Uint8Array
  /** @throws an error that says why it cannot: another key, say */
  decode(bytes: Uint8Array): Uint8Array
}

const [AS_IT_WAS, DEFLATED] = [0, 1]

/** Makes large results smaller (deflate); small ones that would not get smaller are left as they are. */
export function compressed(): LogbookCodec {
  return {
    name: 'deflate',
    encode: (bytes) => {
      const small = deflateRawSync(bytes)
      return small.length < bytes.length ? marked(DEFLATED, small) : marked(AS_IT_WAS, bytes)
    },
    decode: (bytes) => (bytes[0] === DEFLATED ? inflateRawSync(bytes.subarray(1)) : bytes.subarray(1)),
  }
}

/** The key of encrypted logbooks, and those of before. */
export interface EncryptionOptions {
  /** 32 bytes, or their base64: `openssl rand -base64 32`. */
  readonly key: string | Uint8Array
  /** Keys of before, for what they have written: nothing more is written with them. */
  readonly oldKeys?: readonly (string | Uint8Array)[]
}

const [KEY, ID, IV, TAG] = [32, 4, 12, 16]
const CIPHER = 'aes-256-gcm'

/**
 * Encrypts with AES-256-GCM, each record with an initialization vector of its own. A key is good for some thousand million
 * records.
 *
 * @throws InvalidArgument, without the key, when that is not of 32 bytes
 * @example const codec = encrypted({ key: process.env.LOGBOOK_KEY, oldKeys: [process.env.LOGBOOK_KEY_OF_LAST_YEAR] })
 */
export function encrypted(options: EncryptionOptions): LogbookCodec {
  assertOptions(options, { key: true, oldKeys: true }, 'encrypted')
  const key = keyOf(options.key)
  const keys = new Map([key, ...(options.oldKeys ?? []).map(keyOf)].map((each) => [idOf(each).toString('hex'), each]))
  return {
    name: CIPHER,
    encode: (bytes) => {
      const iv = randomBytes(IV)
      const cipher = createCipheriv(CIPHER, key, iv)
      const secret = Buffer.concat([cipher.update(bytes), cipher.final()])
      return Buffer.concat([idOf(key), iv, cipher.getAuthTag(), secret])
    },
    decode: (bytes) => {
      const [id, iv, tag] = [bytes.subarray(0, ID), bytes.subarray(ID, ID + IV), bytes.subarray(ID + IV, ID + IV + TAG)]
      const name = Buffer.from(id).toString('hex')
      const found = keys.get(name)
      if (!found)
        throw new Error(`it was encrypted with key ${name}, and the keys given are ${[...keys.keys()].join(', ')}`)
      const cipher = createDecipheriv(CIPHER, found, iv)
      cipher.setAuthTag(tag)
      return Buffer.concat([cipher.update(bytes.subarray(ID + IV + TAG)), cipher.final()])
    },
  }
}

/** What names a key in records and errors, and does not tell it. */
function idOf(key: Buffer): Buffer {
  return createHash('sha256').update('jobboard key ').update(key).digest().subarray(0, ID)
}

function keyOf(given: unknown): Buffer {
  const key = typeof given === 'string' ? Buffer.from(given, 'base64') : given
  if (key instanceof Uint8Array && key.length === KEY) return Buffer.from(key)
  throw new InvalidArgument('encrypted: a key is 32 bytes, or their base64, as openssl rand -base64 32 makes them')
}

function marked(mark: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(mark), bytes])
}
