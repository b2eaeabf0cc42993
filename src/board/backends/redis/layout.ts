/**
 * Where a board's things are. Every key begins with the board's prefix in braces: a hash tag, so that on a cluster they all
 * lie in one slot, and one script may use them.
 *
 * ```
 * {prefix}:board      hash      format, paused, version (of the log), sequence (of ids), fence, secret (of publications)
 * {prefix}:jobs       hash      id → posting
 * {prefix}:rows       hash      id → revision:posted:written:owner, and a + where resources are granted
 * {prefix}:order      zset      ids in claim order
 * {prefix}:resting    zset      ids of those that rest, by when they wake
 * {prefix}:uuids      zset      uuid:id, in the order of letters
 * {prefix}:held       hash      id → owner:who
 * {prefix}:granted    hash      id → names of resources
 * {prefix}:exclusive  hash      resource → id
 * {prefix}:shared     hash      resource → how many share it
 * {prefix}:keys       hash      key → id:uuid
 * {prefix}:cancels    hash      id → who asked, and why
 * {prefix}:trash      hash      id → when:entry
 * {prefix}:trashed    zset      ids in the order in which they were trashed
 * {prefix}:log        list      what has changed, newest last
 * {prefix}:owners     zset      ids of owners by when they should have been heard of
 * {prefix}:entities   hash      kind and name → owner:instance:entity
 * {prefix}:owner:ID   hash      an owner that lives: number and answers of its newest batch; with a TTL
 * {prefix}:changes    channel   what has changed, signed with the secret
 * ```
 */
import { createHash } from 'node:crypto'
import { InvalidArgument } from '../../../core/errors.ts'

/** In the order in which scripts know them. */
const NAMES = [
  ...['board', 'jobs', 'rows', 'order', 'held', 'granted', 'exclusive', 'shared'],
  ...['keys', 'cancels', 'trash', 'trashed', 'log', 'owners', 'entities', 'resting', 'uuids'],
] as const

/** Longer names are hashed. */
const MAX_NAME_LENGTH = 200

export class Layout {
  readonly prefix: string
  readonly channel: string
  readonly #shared: readonly string[]

  /** @throws InvalidArgument for a prefix that could not be told from the rest of a key */
  constructor(prefix: string) {
    if (!/^[^{}\s]+$/.test(prefix))
      throw new InvalidArgument(
        `prefix ${JSON.stringify(prefix)}: use a text without braces and spaces that is not empty`,
      )
    this.prefix = prefix
    this.channel = this.key('changes')
    this.#shared = NAMES.map((name) => this.key(name))
  }

  key(name: string): string {
    return `{${this.prefix}}:${name}`
  }

  /** Every key a script may use, with that of the owner it is about. */
  keys(owner: string): string[] {
    return [...this.#shared, this.key(`owner:${owner}`)]
  }
}

/** Any text as the name of a field, no two alike: half a character has no bytes of its own, but has an escape in JSON. */
export function fieldName(...texts: readonly string[]): string {
  const name = JSON.stringify(texts)
  if (name.length <= MAX_NAME_LENGTH) return name
  return `#${createHash('sha256').update(name).digest('hex')}`
}

/** The number within an id: ids grow as jobs are posted. One that was made up by hand may have none, or too many digits. */
export function toOrder(id: string): bigint {
  return BigInt(/^job(\d{1,16})$/.exec(id)?.[1] ?? 0)
}
