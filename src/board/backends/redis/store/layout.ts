/**
 * The keys of a board. Every key begins with the board's prefix in braces. The braces are a hash tag: on a cluster all keys
 * are in one slot, so that one script may use them.
 *
 * ```
 * {prefix}:board      hash      format, paused, version (of the log), sequence (of ids), fence, secret (of publications), limits
 *                               (the revision of the limits), swept (how far the dependents were checked, and when), limits-swept (when
 *                               keys of limits were swept)
 * {prefix}:jobs       hash      id → posting
 * {prefix}:rows       hash      id → revision:posted:written:owner, and a + where resources are granted
 * {prefix}:order      zset      ids in claim order
 * {prefix}:resting    zset      ids of delayed jobs, by the end of their delay; infinite for jobs that wait for others
 * {prefix}:order:NAME zset      ids of the jobs of a queue other than the default one, in claim order
 * {prefix}:queued     hash      id → queue, of these jobs
 * {prefix}:queues     hash      queue → 1, of each of these queues that has jobs
 * {prefix}:uuids      zset      uuid:id, in lexicographic order
 * {prefix}:held       hash      id → owner:who
 * {prefix}:granted    hash      id → names of resources, and keys of slots
 * {prefix}:exclusive  hash      resource → id
 * {prefix}:shared     hash      resource → number of jobs that share it
 * {prefix}:keys       hash      key → id:uuid
 * {prefix}:cancels    hash      id → who cancelled, and the reason
 * {prefix}:trash      hash      id → time:entry
 * {prefix}:trashed    zset      ids in the order in which they were trashed
 * {prefix}:log        list      changes, newest last
 * {prefix}:owners     zset      ids of owners, by the end of their TTL
 * {prefix}:entities   hash      kind and name → owner:instance:entity
 * {prefix}:followers  hash      id → owners that follow the job
 * {prefix}:records    hash      kind/name of a record → revision:record
 * {prefix}:slots      hash      key of a limit → number of jobs that hold a slot
 * {prefix}:rates      zset      keys of limits, by their arrival times
 * {prefix}:waits      hash      id → rank:delay:others, of a job that waits for others; see `scripts/shared/due.lua`
 * {prefix}:dependents zset      id:dependent, in lexicographic order
 * {prefix}:ending     hash      id → cancel request, of a job that has ended while others still depend on it
 * {prefix}:history    hash      uuid → the end of the job
 * {prefix}:ended      zset      uuids in the order in which the jobs ended
 * {prefix}:batches    hash      uuid → definition of a batch; uuid:state, uuid:done and uuid:failed: see `scripts/shared/batches.lua`
 * {prefix}:members    hash      id → batch:uuid, of a job that a batch counts
 * {prefix}:batch-jobs zset      batch:o:uuid of an open job, batch:f:id of one in the trash, in lexicographic order
 * {prefix}:batch-order zset     uuids of batches in the order of their creation
 * {prefix}:ended-batches zset   uuids of batches in the order in which they ended
 * {prefix}:windows    zset      keys of jobs that have a window, by its end
 * {prefix}:intervals  hash      key of a limit → interval and burst of the rate by which its tokens were taken
 * {prefix}:owner:ID   hash      a living owner: number and answers of its newest batch; with a TTL
 * {prefix}:changes    channel   changes, signed with the secret; with :ID the changes of jobs that an owner follows; with :records
 *                               the names of records that have changed; with :batches the uuids of batches whose status has
 * ```
 */
import { createHash } from 'node:crypto'
import { InvalidArgument } from '../../../../core/errors.ts'
import { rank } from '../../../model/claim-order.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { DEFAULT_QUEUE } from '../../../model/queues.ts'
import type { RecordName } from '../../../model/record.ts'

/** Names of the shared keys before the key of the owner, in the order of KEYS in the scripts. */
const NAMES = [
  ...['board', 'jobs', 'rows', 'order', 'held', 'granted', 'exclusive', 'shared'],
  ...['keys', 'cancels', 'trash', 'trashed', 'log', 'owners', 'entities', 'resting', 'uuids'],
] as const
/** Names of the shared keys after it. */
const LATER_NAMES = [
  ...['followers', 'records', 'slots', 'rates'],
  ...['waits', 'dependents', 'ending', 'history', 'ended'],
  ...['batches', 'members', 'batch-jobs', 'batch-order', 'ended-batches'],
  ...['windows', 'intervals'],
  ...['queued', 'queues'],
] as const

/** The channels beside the channel of jobs: on them the scripts publish the names of records, or of batches, that have changed. */
export const WATCHABLE = ['records', 'batches'] as const
export type Watchable = (typeof WATCHABLE)[number]

/** Limit of the length of a field's name; longer names are hashed. */
const MAX_NAME_LENGTH = 200

export class RedisLayout {
  readonly prefix: string
  readonly channel: string
  readonly #shared: readonly string[]
  readonly #later: readonly string[]

  /** @throws InvalidArgument for a prefix that could not be separated from the rest of a key */
  constructor(prefix: string) {
    if (!/^[^{}\s]+$/.test(prefix))
      throw new InvalidArgument(
        `prefix must be a non-empty string without braces and spaces, got ${JSON.stringify(prefix)}`,
      )
    this.prefix = prefix
    this.channel = this.key('changes')
    this.#shared = NAMES.map((name) => this.key(name))
    this.#later = LATER_NAMES.map((name) => this.key(name))
  }

  key(name: string): string {
    return `{${this.prefix}}:${name}`
  }

  /** Returns the channel of the changes of records, or of batches. */
  watchChannel(what: Watchable): string {
    return `${this.channel}:${what}`
  }

  /** Returns the channel of the changes of jobs that this owner follows. */
  channelOf(owner: string): string {
    return `${this.channel}:${owner}`
  }

  /** Returns all keys that a script may use, including the key of this owner. */
  keys(owner: string): string[] {
    return [...this.#shared, this.key(`owner:${owner}`), ...this.#later]
  }
}

/**
 * Returns a distinct field name for any texts. It uses JSON because a lone surrogate has no bytes of its own, but has an
 * escape in JSON.
 */
export function fieldName(...texts: readonly string[]): string {
  const name = JSON.stringify(texts)
  if (name.length <= MAX_NAME_LENGTH) return name
  return `#${createHash('sha256').update(name).digest('hex')}`
}

/** Returns the field of a record. */
export function recordField({ kind, id }: RecordName): string {
  return `${kind}/${fieldName(id)}`
}

/** Returns the name of a record; undefined for a field that has a hash in place of the id. */
export function parseRecordField(field: string): RecordName | undefined {
  const cut = field.indexOf('/')
  try {
    const [id]: unknown[] = JSON.parse(field.slice(cut + 1))
    return typeof id === 'string' ? { kind: field.slice(0, cut), id } : undefined
  } catch {
    return undefined
  }
}

/** Returns the place of a job in claim order as a step has it: its rank, with its queue after a colon unless that is the default one. */
export function toPlaceWord({ priority, queue }: Pick<Posting, 'priority' | 'queue'>): number | string {
  return queue === undefined || queue === DEFAULT_QUEUE ? rank(priority) : `${rank(priority)}:${queue}`
}

/** Returns the number within an id, or 0: ids grow as jobs are posted. An id made by hand may have no digits, or too many. */
export function toOrder(id: string): bigint {
  return BigInt(/^job(\d{1,16})$/.exec(id)?.[1] ?? 0)
}
