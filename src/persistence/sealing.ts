/**
 * Atoms as they are kept where a codec is in use: what tasks have returned and thrown is one sealed field, everything else
 * is as it always is, so that states can be read, and listings made, without a key.
 *
 *     sealed: { by: [the codecs' names, in the order in which they were applied], bytes }
 */
import { decode, encode } from '../core/codec.ts'
import { InvalidArgument, SealedLogbook } from '../core/errors.ts'
import { checkedSecrets } from './checked-records.ts'
import { compressed, type LogbookCodec } from './codecs.ts'
import type { AtomDetail } from './models.ts'

interface Seal {
  readonly by: readonly string[]
  readonly bytes: Uint8Array
}

/** What may be anybody's secret. */
type Secrets = Pick<AtomDetail, 'result' | 'failure' | 'revertResult' | 'revertFailure' | 'history'>

type KeptAtom = AtomDetail & { readonly sealed?: Seal }

export class Sealing {
  readonly #codecs: readonly LogbookCodec[]
  readonly #known: ReadonlyMap<string, LogbookCodec>

  /** @throws InvalidArgument for what is no codec */
  constructor(codecs: LogbookCodec | readonly LogbookCodec[] = []) {
    this.#codecs = [codecs].flat()
    for (const codec of this.#codecs) assertCodec(codec)
    // What takes no secret can be undone by everybody, and goes on being read when it is not asked for any more.
    this.#known = new Map([compressed(), ...this.#codecs].map((codec) => [codec.name, codec]))
  }

  /** @throws InvalidArgument when a result is no plain data; SealedLogbook when a codec throws */
  seal(atom: AtomDetail): AtomDetail {
    if (this.#codecs.length === 0) return atom
    const { result, failure, revertResult, revertFailure, history, ...open } = atom
    const secrets = present({ result, failure, revertResult, revertFailure, history })
    if (Object.keys(secrets).length === 0) return open
    let bytes = encode(secrets, 'msgpack')
    for (const codec of this.#codecs) bytes = attempted(`encode atom ${atom.name}`, () => codec.encode(bytes))
    const sealed: Seal = { by: this.#codecs.map(({ name }) => name), bytes: Uint8Array.from(bytes) }
    const kept: KeptAtom = { ...open, sealed }
    return kept
  }

  /** What was kept without a codec is as it is. @throws SealedLogbook when it cannot be read with these codecs */
  unseal(atom: KeptAtom): AtomDetail {
    const { sealed, ...open } = atom
    if (!sealed) return atom
    const what = `read the results of atom ${atom.name}`
    let { bytes } = sealed
    for (const name of sealed.by.toReversed()) {
      const codec = this.#known.get(name)
      if (!codec) throw unreadable(what, `they were kept with the codec ${name}, which was not given`)
      bytes = attempted(what, () => codec.decode(bytes))
    }
    return { ...open, ...attempted(what, () => secretsIn(bytes, what)) }
  }
}

/** @throws Error for bytes that hold something else */
function secretsIn(bytes: Uint8Array, what: string): Secrets {
  const { result, failure, revertResult, revertFailure, history }: Readonly<Record<string, unknown>> = Object(
    decode(bytes, 'msgpack'),
  )
  const checked = checkedSecrets({ failure, revertFailure, history }, what)
  return {
    ...present({ result, failure: undefined, revertResult, revertFailure: undefined, history: undefined }),
    ...checked,
  }
}

function present(secrets: { readonly [K in keyof Secrets]: Secrets[K] | undefined }): Secrets {
  return Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== undefined))
}

/** Whatever is wrong with a codec or a key, no job is to blame for it. */
function attempted<T>(what: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw unreadable(what, error instanceof Error ? error.message : String(error), error)
  }
}

function unreadable(what: string, why: string, cause?: unknown): SealedLogbook {
  const how = 'open the logbooks with the codec and the key that wrote them'
  return new SealedLogbook(`cannot ${what}: ${why}; ${how}`, { cause })
}

function assertCodec(codec: unknown): void {
  const { name, encode: to, decode: from }: Partial<LogbookCodec> = Object(codec)
  if (typeof name === 'string' && name !== '' && typeof to === 'function' && typeof from === 'function') return
  throw new InvalidArgument(
    'codec: it has to have a name, encode and decode, as encrypted({ key }) and compressed() have; or be a list of such',
  )
}
