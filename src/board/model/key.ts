/**
 * The key of a job: its name, its idempotency window, and what becomes of a post that finds it taken.
 *
 * | the job with the key | a post with `on: 'ignore'` | a post with `on: 'replace'` |
 * |---|---|---|
 * | waits, and was never claimed | nothing: `waiting` | replaces its posting: `waiting`, `replaced` |
 * | waits for its poster to claim it (`postAndClaim`), or was cancelled | nothing: `waiting` | nothing: `running` |
 * | runs, or has run | nothing: `running` | nothing: `running` |
 * | has left the board, in the window | nothing: `window` | nothing: `window` |
 * | has left the board | posts a job | posts a job |
 *
 * The window counts from the post, by the board's clock; a post that replaces another begins it anew. The backend decides in the
 * transaction of the post whether the window is over.
 */
import { InvalidArgument, InvalidPosting } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'

/** A key with its options. */
export interface KeyOptions {
  /** The name: at most one job with this key is on the board. */
  readonly name: string
  /** The idempotency window: the time after the post for which the key stays taken, also when the job has left the board. */
  readonly for?: Duration
  /**
   * The handling of a post whose key is taken: with `ignore`, the default, nothing is posted; with `replace`, it replaces the posting of a
   * job that was never claimed, unless the job was cancelled or its poster claims it itself.
   */
  readonly on?: OnTakenKey
}

/** The option `key` of `post`: the name of the key, or the name with options. */
export type PostKey = string | KeyOptions

export type OnTakenKey = 'ignore' | 'replace'

/** The reason why a post has posted nothing: the job with its key waits, or runs or has run, or has left the board within the key's window. */
export type KeyTakenReason = 'waiting' | 'running' | 'window'

/** The fields of a posting that its key has. */
interface KeyFields {
  readonly key?: string
  readonly keyFor?: number
}

/** The forms of a key, for messages. */
const KEY_FORMS = "a non-empty string, or { name, for, on }, such as { name: 'sync fedora', for: '10m' }"

/** Returns the key with its options, without undefined ones. @throws InvalidPosting, InvalidArgument for what is no key with options */
export function toKeyOptions(key: PostKey): KeyOptions {
  if (typeof key === 'string') return { name: key }
  if (typeof key !== 'object' || key === null) throw new InvalidPosting(`key must be ${KEY_FORMS}`)
  assertOptions(key, { name: true, for: true, on: true }, 'key')
  const { name, for: window, on } = key
  if (typeof name !== 'string' || name === '') throw new InvalidPosting('key.name must be a non-empty string')
  if (on !== undefined && on !== 'ignore' && on !== 'replace')
    throw new InvalidPosting("key.on must be 'ignore' or 'replace'")
  return { name, ...(window === undefined ? {} : { for: window }), ...(on === undefined ? {} : { on }) }
}

/** Returns the fields for the posting. @throws InvalidPosting; InvalidArgument for a window that is not a duration */
export function toKeyFields(key: PostKey | undefined): KeyFields {
  if (key === undefined) return {}
  const { name, for: window } = toKeyOptions(key)
  if (window === undefined) return { key: name }
  const keyFor = toMilliseconds(window, 'key.for')
  if (keyFor === 0) throw new InvalidPosting('key.for must be longer than 0; omit it for a key without a window')
  return { key: name, keyFor }
}

/** Returns what becomes of the post if its key is taken. @throws InvalidPosting, InvalidArgument */
export function toOnTakenKey(key: PostKey | undefined): OnTakenKey {
  return (key === undefined ? undefined : toKeyOptions(key).on) ?? 'ignore'
}

/**
 * Returns the key that a flow declares, with what the caller adds to it.
 *
 * @throws InvalidArgument where the caller gives another name, window or `on` than the flow declares
 */
export function mergeKeys(flow: string, key: PostKey | undefined, declared: KeyOptions): KeyOptions {
  if (key === undefined) return declared
  const options = toKeyOptions(key)
  if (options.name !== declared.name)
    throw new InvalidArgument(`flow ${flow} declares the key of its jobs: omit key, or give the same one`)
  for (const field of ['for', 'on'] as const)
    if (differs(options[field], declared[field]))
      throw new InvalidArgument(`flow ${flow} declares key.${field} of its jobs: omit it, or give the same`)
  return { ...options, ...declared }
}

function differs(value: Duration | OnTakenKey | undefined, declared: Duration | OnTakenKey | undefined): boolean {
  if (value === undefined || declared === undefined || value === declared) return false
  if (value === 'ignore' || value === 'replace') return true
  return toMilliseconds(value, 'key.for') !== toMilliseconds(declared, 'key.for')
}
