/** Grants claims, and ends them. */
import { JobboardError } from '../../../core/errors.ts'
import { attempt, type Result, toFailed } from '../../../core/result.ts'
import type {
  BackendClaims,
  ClaimGrant,
  ClaimRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Settlement,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { isFirstRun } from '../../model/dependencies.ts'
import type { ClaimLimits } from '../../model/limits.ts'
import { DEFAULT_QUEUE } from '../../model/queues.ts'
import { toResourceWants } from '../../model/resources.ts'
import type { RedisBoard } from './commit/board.ts'
import { NO_REPLY, type StepReply } from './commit/queued-steps.ts'
import {
  claimRejection,
  type ScriptStep,
  SMALL_STEP_BYTES,
  toHistoryWords,
  toJobName,
  toKeyField,
  trashStep,
} from './commit/steps.ts'
import { encodePostingWithin, parseHolder } from './store/encodings.ts'
import { fieldName } from './store/layout.ts'

export class RedisClaims implements BackendClaims {
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.#board = board
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    const { committer } = this.#board.open
    const steps = choices.map(tryClaimStep)
    const answers = await committer.submitAll(steps)
    if (answers.some(isBlockedByReleased)) {
      // A dead owner held the resource, which was released since: these claims are sent once more.
      const freed = [...answers.keys()].filter((index) => isBlockedByReleased(answers[index] ?? NO_REPLY))
      const second = await committer.submitAll(freed.map((index) => steps[index] ?? NO_REPLY))
      for (const [at, index] of freed.entries()) answers[index] = second[at] ?? NO_REPLY
    }
    return choices.map((choice, index) => tryGrant(choice, answers[index] ?? NO_REPLY))
  }

  settle(settlement: Settlement): Promise<void> {
    return attempt(() => {
      if (!this.#board.opened?.session.isAlive(settlement.session)) throw claimLostError(settlement)
      return this.#board.submit(settleStep(settlement)).then(({ done }) => {
        if (!done) throw claimLostError(settlement)
      })
    })
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    const step = releaseStep(request)
    const { done, details } = await this.#board.submit(step)
    if (done) return 'released'
    const [why, problem] = details
    if (why === 'gone' || why === 'unclaimed' || why === 'changed') return why
    const { uri } = this.#board.location
    throw new JobboardError(`${step.what}: ${uri} refused it: ${String(problem)}; nothing was changed`)
  }

  async owner(id: string): Promise<string | undefined> {
    const value = await this.#board.value('held', id)
    return value && parseHolder(value)
  }
}

function tryClaimStep(request: ClaimRequest): Result<ScriptStep> {
  try {
    return { value: claimStep(request) }
  } catch (error) {
    return toFailed(error)
  }
}

function claimStep({ id, revision, who, posting, limits }: ClaimRequest): ScriptStep {
  const { exclusive, shared } = toResourceWants(posting)
  const bytes = encodePostingWithin(posting)
  const wants = exclusive.length + shared.length > 0
  return {
    arguments: [
      'claim',
      id,
      revision,
      who,
      bytes,
      wants ? toFields(exclusive) : null,
      wants ? toFields(shared) : null,
      limits ? toLimitWords(limits) : null,
      isFirstRun(posting) || null,
    ],
    what: `claim of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES * (1 + exclusive.length + shared.length + (limits?.wants.length ?? 0)),
  }
}

function toFields(names: readonly string[]): readonly string[] {
  return names.map((name) => fieldName(name))
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

function settleStep(settlement: Settlement): ScriptStep {
  const { id, revision, posting, session, kind } = settlement
  const what = `${kind} of ${toJobName(posting)}`
  if (kind === 'trash') return { ...trashStep(kind, settlement), session }
  if (kind === 'abandon') {
    const bytes = encodePostingWithin(posting)
    const words = [kind, id, revision, bytes, posting.delay ?? null, toQueueWord(settlement.movedTo)] as const
    return { arguments: words, what, bytes: bytes.length + SMALL_STEP_BYTES, session }
  }
  const { words, bytes } = toHistoryWords(settlement)
  const [record, keep] = words
  return { arguments: [kind, id, revision, toKeyField(posting), posting.uuid, record, keep], what, bytes, session }
}

/** Returns the step that ends the claim of another owner. */
function releaseStep({ id, revision, posting }: ReleaseRequest): ScriptStep {
  const bytes = encodePostingWithin(posting)
  return {
    arguments: ['release', id, revision, bytes],
    what: `release of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES,
  }
}

/** Returns the queue to which a job is moved as the step has it: empty for the default one, null for none. */
function toQueueWord(queue: string | undefined): string | null {
  return queue === undefined ? null : queue === DEFAULT_QUEUE ? '' : queue
}

function isBlockedByReleased(answer: Result<StepReply>): boolean {
  if (!('value' in answer) || !answer.value.wasReleasedSince) return false
  const [why, , until] = answer.value.details
  return why === 'resource' || (why === 'limit' && until === undefined)
}

function tryGrant(choice: ClaimRequest, answer: Result<StepReply>): Result<ClaimGrant> {
  if ('error' in answer) return answer
  try {
    return { value: toGrant(choice, answer.value) }
  } catch (error) {
    return toFailed(error)
  }
}

function toGrant(choice: ClaimRequest, { done, details, session }: StepReply): ClaimGrant {
  if (!done) throw claimRejection(choice, { why: details[0], resource: details[1], until: details[2] })
  const [revision, fence, arrivals] = details
  const granted = { session, revision: Number(revision), fence: BigInt(fence as number | bigint) }
  return Array.isArray(arrivals) && arrivals.length > 0
    ? { ...granted, arrivals: toArrivals(choice, arrivals) }
    : granted
}

/** Returns the arrival times by key. The script knows the keys by their fields. */
function toArrivals({ limits }: ClaimRequest, words: readonly unknown[]): NonNullable<ClaimGrant['arrivals']> {
  return (limits?.wants ?? []).flatMap(({ key }) => {
    const at = words.indexOf(fieldName(key))
    return at === -1 ? [] : [{ key, arrivalMs: Number(words[at + 1]) }]
  })
}

function claimLostError({ kind, posting }: Settlement): Error {
  return refusalError(`${kind} of ${toJobName(posting)}`, { why: 'lost' })
}
