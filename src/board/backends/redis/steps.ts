/** Builds the steps of the commit script, with their arguments in the order of the script's functions. */
import type {
  ClaimRequest,
  DiscardRequest,
  Entity,
  PostRequest,
  ReleaseRequest,
  ReplaceRequest,
  RestoreOptions,
  Settlement,
  TrashedEntry,
} from '../../contract/index.ts'
import { rank } from '../../model/claim-order.ts'
import { cascadeCancellation, type Dependency, isFirstRun } from '../../model/dependencies.ts'
import { encodeEndedJob } from '../../model/ended-job.ts'
import type { ClaimLimits, TokenRequest } from '../../model/limits.ts'
import type { Posting } from '../../model/posting.ts'
import { toResourceWants } from '../../model/resources.ts'
import { fieldName } from './layout.ts'
import { encodeCancellation, encodeEntity, encodePostingWithin, encodeTrash, type StoredPosting } from './records.ts'

/** The name of a step and its arguments. A missing argument is null, because the script cannot skip one. */
export type StepArguments = readonly [
  name: string,
  ...given: (string | number | boolean | null | Uint8Array | readonly string[])[],
]

export interface ScriptStep {
  readonly arguments: StepArguments
  /** The name of the operation for messages: `consume of job UUID (NAME)`. */
  readonly what: string
  /** The approximate size, in bytes. */
  readonly bytes: number
  /** Whether the step takes memory for long, so that a server with full memory must refuse it. */
  readonly grows?: true
  /** The only session in which the step may be executed. */
  readonly session?: string
}

/** The assumed size of a step without byte values. */
const SMALL_STEP_BYTES = 100

/** The size of a dependency in a step, and of its removal. */
const DEPENDENCY_BYTES = 40

export function postStep({ posting, after = [], member }: PostRequest, { bytes }: StoredPosting): ScriptStep {
  const { uuid, priority, delay = null, keyFor = null } = posting
  const batch = [posting.batch ?? null, member ?? null] as const
  const others = toDependencyWords(after)
  return {
    arguments: ['post', rank(priority), bytes, uuid, toKeyField(posting), delay, others, ...batch, keyFor],
    what: `post of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES + DEPENDENCY_BYTES * after.length,
    grows: true,
  }
}

export function replaceStep({ id, revision, posting, window }: ReplaceRequest, bytes: Uint8Array): ScriptStep {
  const { priority, delay = null } = posting
  return {
    arguments: ['replace', id, revision, rank(priority), bytes, toKeyField(posting), delay, window ?? null],
    what: `replacement of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES,
    grows: true,
  }
}

export function claimStep({ id, revision, who, posting, limits }: ClaimRequest): ScriptStep {
  const { exclusive, shared } = toResourceWants(posting)
  const bytes = encodePostingWithin(posting)
  const wants = exclusive.length + shared.length > 0
  const names = (list: readonly string[]) => (wants ? list.map((name) => fieldName(name)) : null)
  return {
    arguments: [
      'claim',
      id,
      revision,
      who,
      bytes,
      names(exclusive),
      names(shared),
      limits ? toLimitWords(limits) : null,
      isFirstRun(posting),
    ],
    what: `claim of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES * (1 + exclusive.length + shared.length + (limits?.wants.length ?? 0)),
  }
}

/** Returns the revision, and five words for each limit: see `scripts/shared/limits.lua`. */
function toLimitWords({ revision, wants }: ClaimLimits): readonly string[] {
  const words = [String(revision)]
  for (const { key, concurrency = '', rate } of wants)
    words.push(fieldName(key), String(concurrency), ...[rate?.cost, rate?.burst, rate?.intervalMs].map(toWord))
  return words
}

function toWord(value: number | undefined): string {
  return value === undefined ? '' : String(value)
}

export function tokensStep({ key, revision, rate, costs }: TokenRequest): ScriptStep {
  const words = rate ? [rate.burst, rate.intervalMs, ...costs].map(String) : []
  return {
    arguments: ['tokens', fieldName(key), revision, words],
    what: `taking tokens of limit ${key}`,
    bytes: SMALL_STEP_BYTES + 20 * words.length,
  }
}

export function settleStep(settlement: Settlement): ScriptStep {
  const { id, revision, posting, session, kind } = settlement
  const what = `${kind} of ${toJobName(posting)}`
  if (kind === 'trash') return { ...trashStep(kind, settlement), session }
  if (kind === 'abandon') {
    const bytes = encodePostingWithin(posting)
    const words = [kind, id, revision, bytes, posting.delay ?? null] as const
    return { arguments: words, what, bytes: bytes.length + SMALL_STEP_BYTES, session }
  }
  const { words, bytes } = toHistoryWords(settlement)
  return { arguments: [kind, id, revision, toKeyField(posting), posting.uuid, ...words], what, bytes, session }
}

/** Returns the step that ends the claim of another owner. */
export function releaseStep({ id, revision, posting }: ReleaseRequest): ScriptStep {
  const bytes = encodePostingWithin(posting)
  return {
    arguments: ['release', id, revision, bytes],
    what: `release of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES,
  }
}

export function discardStep(discarded: DiscardRequest): ScriptStep {
  return trashStep('discard', discarded)
}

/** Returns the step that moves a job to the trash, with the cancel request for the jobs that depend on it. */
function trashStep(kind: 'trash' | 'discard', trashed: DiscardRequest): ScriptStep {
  const { id, revision, posting, at } = trashed
  const entry = encodeTrash(trashed)
  const { words, bytes } = toHistoryWords(trashed)
  const request = encodeCancellation(cascadeCancellation(trashed))
  return {
    arguments: [kind, id, revision, entry, toKeyField(posting), posting.uuid, ...words, request, at?.getTime() ?? null],
    what: `trash of ${toJobName(posting)}`,
    bytes: entry.length + request.length + bytes,
  }
}

/** Returns the words that add the end of a job to the history, and the approximate size of the step without other byte values. */
function toHistoryWords({ posting, history }: Pick<DiscardRequest, 'posting' | 'history'>): {
  readonly words: readonly [record: Uint8Array | null, keep: number]
  readonly bytes: number
} {
  const record = history && encodeEndedJob(history.job)
  const bytes = SMALL_STEP_BYTES + (record?.length ?? 0) + DEPENDENCY_BYTES * (posting.after?.length ?? 0)
  return { words: [record ?? null, history?.keep ?? 0], bytes }
}

/** The step that continues the ends of jobs on which many others depend: see `scripts/shared/due.lua`. */
export const FINISH_STEP: ScriptStep = {
  arguments: ['finish'],
  what: 'release of jobs after one that has ended',
  bytes: SMALL_STEP_BYTES,
}

export function restoreStep(entry: TrashedEntry, posting: Posting, { after = [] }: RestoreOptions = {}): ScriptStep {
  const { uuid, priority, batch = null, keyFor = null } = posting
  const bytes = encodePostingWithin(posting)
  const [key, others] = [toKeyField(posting), toDependencyWords(after)]
  return {
    arguments: ['restore', entry.id, rank(priority), bytes, uuid, key, others, batch, keyFor],
    what: `restore of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES + DEPENDENCY_BYTES * after.length,
    grows: true,
  }
}

export function purgeStep({ id, posting }: TrashedEntry): ScriptStep {
  return { arguments: ['purge', id], what: `purge of ${toJobName(posting)}`, bytes: SMALL_STEP_BYTES }
}

export function registerStep(entity: Entity, session: string): ScriptStep {
  const bytes = encodeEntity(entity)
  return {
    arguments: ['register', fieldName(entity.kind, entity.name), fieldName(entity.instance), bytes],
    what: `registering ${entity.kind} ${entity.name}`,
    bytes: bytes.length + SMALL_STEP_BYTES,
    grows: true,
    session,
  }
}

export function unregisterStep({ kind, name, instance }: Entity): ScriptStep {
  const words = ['unregister', fieldName(kind, name), fieldName(instance)] as const
  return { arguments: words, what: `unregistering ${kind} ${name}`, bytes: SMALL_STEP_BYTES }
}

/** Returns a word for each job on which another one depends: `=ID` if it must be done, `~ID` if it must have ended in any way. */
export function toDependencyWords(after: readonly Dependency[]): readonly string[] {
  return after.map(({ id, on }) => `${on === 'settled' ? '~' : '='}${id}`)
}

/** Returns the field of the posting's key. */
export function toKeyField({ key }: Posting): string | null {
  return key === undefined ? null : fieldName(key)
}

/** Returns the name of a job for messages. */
export function toJobName({ uuid, name }: Posting): string {
  return `job ${uuid} (${name})`
}
