/** What the script is asked to do, step by step: its words, in its order. */
import type { Choice, Discard, Entity, PostRequest, Settlement, TrashedEntry } from '../backend.ts'
import type { Posting } from '../posting.ts'
import { rank } from '../priority.ts'
import { resourcesOf } from '../resources.ts'
import { fieldName } from './layout.ts'
import { encodeEntity, encodeTrash, type StoredPosting, writePosting } from './records.ts'

/** The name of the step, and what it is given. Null where there is nothing: the script knows no gaps. */
export type Words = readonly [
  name: string,
  ...given: (string | number | boolean | null | Uint8Array | readonly string[])[],
]

export interface Step {
  readonly words: Words
  /** For messages: `consume of job UUID (NAME)`. */
  readonly what: string
  /** How large it is, about. */
  readonly bytes: number
  /** It takes memory that nothing gives back soon: refused where there is none. */
  readonly grows?: true
  /** Only in this session. */
  readonly session?: string
}

/** Of what is short. */
const SMALL = 100

export function postStep({ posting }: PostRequest, { bytes }: StoredPosting): Step {
  const { uuid, key, priority, delay = null } = posting
  const words = ['post', rank(priority), bytes, uuid, key === undefined ? null : fieldName(key), delay] as const
  return { words, what: `post of ${nameOf(posting)}`, bytes: bytes.length + SMALL, grows: true }
}

export function claimStep({ id, revision, who, posting }: Choice): Step {
  const { exclusive, shared } = resourcesOf(posting)
  const bytes = writePosting(posting)
  const wants = exclusive.length + shared.length > 0
  const names = (list: readonly string[]) => (wants ? list.map((name) => fieldName(name)) : null)
  return {
    words: ['claim', id, revision, who, bytes, names(exclusive), names(shared)],
    what: `claim of ${nameOf(posting)}`,
    bytes: bytes.length + SMALL * (1 + exclusive.length + shared.length),
  }
}

export function settleStep(settlement: Settlement): Step {
  const { id, revision, posting, session, kind } = settlement
  const what = `${kind} of ${nameOf(posting)}`
  const key = posting.key === undefined ? null : fieldName(posting.key)
  const { uuid, delay = null } = posting
  if (kind === 'consume') return { words: ['consume', id, revision, key, uuid], what, bytes: SMALL, session }
  const bytes = kind === 'trash' ? encodeTrash(settlement) : writePosting(posting)
  const more = kind === 'trash' ? [key, uuid] : [delay]
  return { words: [kind, id, revision, bytes, ...more], what, bytes: bytes.length + SMALL, session }
}

export function discardStep(discarded: Discard): Step {
  const { id, revision, posting } = discarded
  const entry = encodeTrash(discarded)
  const key = posting.key === undefined ? null : fieldName(posting.key)
  return {
    words: ['discard', id, revision, entry, key, posting.uuid],
    what: `trash of ${nameOf(posting)}`,
    bytes: entry.length + SMALL,
  }
}

export function restoreStep(entry: TrashedEntry, posting: Posting): Step {
  const { uuid, key, priority } = posting
  const bytes = writePosting(posting)
  return {
    words: ['restore', entry.id, rank(priority), bytes, uuid, key === undefined ? null : fieldName(key)],
    what: `restore of ${nameOf(posting)}`,
    bytes: bytes.length + SMALL,
    grows: true,
  }
}

export function purgeStep({ id, posting }: TrashedEntry): Step {
  return { words: ['purge', id], what: `purge of ${nameOf(posting)}`, bytes: SMALL }
}

export function registerStep(entity: Entity, session: string): Step {
  const bytes = encodeEntity(entity)
  return {
    words: ['register', fieldName(entity.kind, entity.name), fieldName(entity.instance), bytes],
    what: `registering ${entity.kind} ${entity.name}`,
    bytes: bytes.length + SMALL,
    grows: true,
    session,
  }
}

export function unregisterStep({ kind, name, instance }: Entity): Step {
  const words = ['unregister', fieldName(kind, name), fieldName(instance)] as const
  return { words, what: `unregistering ${kind} ${name}`, bytes: SMALL }
}

/** As every message names it. */
export function nameOf({ uuid, name }: Posting): string {
  return `job ${uuid} (${name})`
}
