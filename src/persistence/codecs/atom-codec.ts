/**
 * Encodes atoms for storage where a codec is in use: the results and errors of tasks become one sealed field. All other
 * fields stay readable, so that states can be read, and listings made, without a key.
 *
 *     sealed: { by: [the codecs' names, in the order in which they were applied], bytes }
 *
 * A user who can write to the storage chooses `by` and everything beside `sealed`: none of it is trusted where a codec
 * is required.
 */
import { encode } from '../../core/codec.ts'
import { InvalidArgument, messageOf, SealedLogbook } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { AtomState } from '../../core/states.ts'
import { checkSecrets } from '../checked-records.ts'
import type { AtomDetail } from '../models.ts'
import { assertReadable, type RecordDecoder } from '../record-memory.ts'
import { compressed, type LogbookCodec, type RecordPlace } from './codecs.ts'

export interface EncodedSecrets {
  readonly by: readonly string[]
  readonly bytes: Uint8Array
}

/** The fields that may be secret. */
type Secrets = Pick<
  AtomDetail,
  'result' | 'failure' | 'revertResult' | 'revertFailure' | 'history' | 'progressMessage' | 'checkpoint'
>

/** An atom with a seal, which any user of the storage may have written. */
export type SealedAtom = AtomDetail & { readonly sealed?: unknown }

/** The location of an atom's flow; the atom's name completes it. */
export type FlowPlace = Omit<RecordPlace, 'atom'>

/** The maximum number of codecs for one record: each may make it larger when it is read. */
const MAX_CODECS = 8

/** The states in which an atom has no result yet, so that its record may lack a seal where one is required. */
const STATES_WITHOUT_RESULT: readonly AtomState[] = ['PENDING', 'RUNNING', 'IGNORE']

export class RecordCodec {
  readonly #codecs: readonly LogbookCodec[]
  readonly #known: ReadonlyMap<string, LogbookCodec>
  /** The accepted names of each required codec. */
  readonly #requiredNames: readonly (readonly string[])[]

  /** @throws InvalidArgument for an invalid codec, for two codecs of one name, and for too many codecs */
  constructor(codecs: LogbookCodec | readonly LogbookCodec[] = []) {
    this.#codecs = [codecs].flat()
    for (const codec of this.#codecs) assertCodec(codec)
    const all = this.#codecs.flatMap((codec) => [codec, ...(codec.older ?? [])])
    assertDistinct(this.#codecs, all)
    // Compression has no secret: its records can be read also when it is not configured any more.
    this.#known = new Map([compressed(), ...all].map((codec) => [codec.name, codec]))
    const required = this.#codecs.filter((codec) => codec.require)
    this.#requiredNames = required.map(({ name, older = [] }) => [name, ...older.map((each) => each.name)])
  }

  /** Whether sealed fields are secret. */
  get encrypts(): boolean {
    return this.#codecs.some((codec) => codec.encrypts)
  }

  /**
   * Seals the secret fields of an atom.
   *
   * @throws InvalidArgument when a result is not plain data; StorageFailure when it could not be read again;
   * SealedLogbook when a codec throws
   */
  encode(atom: AtomDetail, flow: FlowPlace): AtomDetail {
    if (this.#codecs.length === 0) return atom
    const { open, secrets } = splitSecrets(atom)
    if (Object.keys(secrets).length === 0 && !this.#needsSeal(atom)) return open
    const place = { ...flow, atom: atom.name }
    const plain = encode(secrets, 'msgpack')
    let bytes = plain
    for (const codec of this.#codecs) bytes = runCodec(`encode atom ${atom.name}`, () => codec.encode(bytes, place))
    assertReadable(plain, { storedBytes: bytes.length, what: `results of atom ${atom.name}` })
    const sealed: EncodedSecrets = { by: this.#codecs.map(({ name }) => name), bytes: Uint8Array.from(bytes) }
    const kept: SealedAtom = { ...open, sealed }
    return kept
  }

  /**
   * Returns the atom with its secret fields. An atom that was stored without a codec is returned as it is, unless a
   * codec is required.
   *
   * @param place.decoder one decoder for all atoms that are read together
   * @throws SealedLogbook when it cannot be read with these codecs, or has not gone through a required one
   */
  decode(atom: SealedAtom, { decoder, ...flow }: FlowPlace & { readonly decoder: RecordDecoder }): AtomDetail {
    const { sealed, ...rest } = atom
    const { open, secrets } = splitSecrets(rest)
    const what = `read the results of atom ${atom.name}`
    if (sealed === undefined) {
      if (Object.keys(secrets).length > 0 || this.#needsSeal(atom)) this.#assertRequired([], what)
      return atom
    }
    const { by, bytes } = checkSeal(sealed, what)
    const codecs = by.map((name) => this.#codecNamed(name, what))
    this.#assertRequired(by, what)
    // Secret fields beside a seal are ignored: they were not written with it.
    return { ...open, ...decodeSecrets(bytes, { codecs, what, decoder, place: { ...flow, atom: atom.name } }) }
  }

  #codecNamed(name: string, what: string): LogbookCodec {
    const codec = this.#known.get(name)
    if (codec) return codec
    throw unreadableError(what, `they were written with the codec ${name}, which was not given`)
  }

  /**
   * Returns whether the atom must have a seal: with a result and without a seal, its seal may have been removed, and
   * the result would be lost unnoticed.
   */
  #needsSeal({ state }: AtomDetail): boolean {
    return this.#requiredNames.length > 0 && !STATES_WITHOUT_RESULT.includes(state)
  }

  /** Checks that the required codecs were applied. @throws SealedLogbook */
  #assertRequired(by: readonly string[], what: string): void {
    for (const names of this.#requiredNames) {
      if (names.some((name) => by.includes(name))) continue
      throw new SealedLogbook(
        `cannot ${what}: the record was not written with ${names[0]}, which is required; another user may have put it there. ` +
          'If it was written before these logbooks were encrypted, open them with require: false until it is removed',
      )
    }
  }
}

interface Unsealing {
  readonly codecs: readonly LogbookCodec[]
  /** The present operation, for errors. */
  readonly what: string
  readonly decoder: RecordDecoder
  readonly place: RecordPlace
}

/** Undoes the codecs, the last one first. */
function decodeSecrets(sealed: Uint8Array, { codecs, what, decoder, place }: Unsealing): Secrets {
  let bytes = sealed
  for (const codec of codecs.toReversed()) bytes = runCodec(what, () => codec.decode(bytes, place))
  const secrets: unknown = runCodec(what, () => decoder.decode(bytes, { storedBytes: sealed.length }))
  if (typeof secrets !== 'object' || secrets === null) throw unreadableError(what, 'they are damaged')
  const { result, revertResult, ...checked } = splitSecrets(secrets).secrets
  return { ...defined({ result, revertResult }), ...runCodec(what, () => checkSecrets(checked, what)) }
}

/** Splits an atom into its open and its secret fields. */
function splitSecrets<A extends object>(
  atom: A & Partial<Secrets>,
): { open: Omit<A, keyof Secrets>; secrets: Secrets } {
  const { result, failure, revertResult, revertFailure, history, progressMessage, checkpoint, ...open } = atom
  const secrets = { result, failure, revertResult, revertFailure, history, progressMessage, checkpoint }
  return { open, secrets: Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== undefined)) }
}

/** Checks a seal. @throws SealedLogbook when it is not a seal, or would be decoded many times */
function checkSeal(sealed: unknown, what: string): EncodedSecrets {
  const { by, bytes }: { by?: unknown; bytes?: unknown } = Object(sealed)
  const isList = Array.isArray(by) && by.length <= MAX_CODECS && by.every((name) => typeof name === 'string')
  if (!isList || new Set(by).size < by.length || !(bytes instanceof Uint8Array))
    throw unreadableError(what, 'the record is damaged: a codec is named twice, or the sealed field has no bytes')
  return { by, bytes }
}

/** Runs a codec. An error of a codec or a key is never charged to a job. */
function runCodec<T>(what: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw unreadableError(what, messageOf(error), error)
  }
}

function unreadableError(what: string, why: string, cause?: unknown): SealedLogbook {
  const how = 'open the logbooks with the codec and the key that wrote them'
  return new SealedLogbook(`cannot ${what}: ${why}; ${how}`, { cause })
}

function assertCodec(codec: unknown): void {
  const { name, encode: to, decode: from, older = [] }: Partial<LogbookCodec> = Object(codec)
  const isCodec = typeof name === 'string' && name !== '' && typeof to === 'function' && typeof from === 'function'
  if (!isCodec || !Array.isArray(older)) {
    throw new InvalidArgument(
      'codec must have a name, encode and decode, as encrypted({ key }) and compressed() have, or be a list of such codecs',
    )
  }
  for (const each of older) assertCodec(each)
}

/** Checks that the names differ: a record names its codecs, and two of one name could not be distinguished. */
function assertDistinct(codecs: readonly LogbookCodec[], all: readonly LogbookCodec[]): void {
  if (codecs.length > MAX_CODECS)
    throw new InvalidArgument(`codec: at most ${MAX_CODECS} codecs can be given, got ${codecs.length}`)
  const names = all.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined)
    throw new InvalidArgument(`codec: two codecs have the name ${twice}; give each once, with all of its keys`)
}
