/** The arguments and the answer of the function `claim`. */
import type { CommitResult } from '../../../../core/async/group-commit.ts'
import { NotConnected, WritesRefused } from '../../../../core/errors.ts'
import { advisoryKey, decodeText, encodeText } from '../../../../postgres/index.ts'
import type { ClaimGrant, ClaimRequest } from '../../../contract/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import { limitReachedError } from '../../../model/limits.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { toResourceWants } from '../../../model/resources.ts'
import type { OwnSession, PostgresBoard } from '../store/board.ts'
import { jobNumber } from '../store/rows.ts'
import { type Encoded, joinBytes, toJobName } from './grouping.ts'

/** Returns the arguments of the function `claim` after the session. */
export function toClaimParameters(group: readonly Encoded<ClaimRequest>[]): unknown[] {
  return areAlike(group) ? toPlainParameters(group) : toAllParameters(group)
}

/** Returns whether the claims take the plain path of the function: none has resources or limits, and all have the same owner, revision and life. */
function areAlike(group: readonly Encoded<ClaimRequest>[]): boolean {
  const [first] = group
  return group.every(
    ({ request, bytes }) =>
      request.posting.resources === undefined &&
      (request.limits === undefined || request.limits.wants.length === 0) &&
      request.who === first?.request.who &&
      request.revision === first.request.revision &&
      Buffer.compare(bytes, first.bytes) === 0,
  )
}

/** Returns the arguments of claims that are {@link areAlike}: their owner, revision and life once. */
function toPlainParameters(group: readonly Encoded<ClaimRequest>[]): unknown[] {
  const [first] = group
  const revisions = new Set(group.flatMap(({ request: { limits } }) => (limits ? [limits.revision] : [])))
  return [
    group.map(({ request }) => jobNumber(request.id)),
    first ? [first.request.revision] : [],
    first ? [encodeText(first.request.who)] : [],
    ...joinBytes(first ? [first] : []),
    ...[[], [], [], []],
    [...revisions],
    ...[[], [], [], [], [], []],
  ]
}

function toAllParameters(group: readonly Encoded<ClaimRequest>[]): unknown[] {
  const choices = group.map(({ request }) => request)
  const grants = choices.flatMap(({ posting }, index) => toWantedGrants(posting).map((grant) => ({ ...grant, index })))
  const limits = choices.flatMap(({ limits }, index) => (limits?.wants ?? []).map((want) => ({ ...want, index })))
  return [
    choices.map(({ id }) => jobNumber(id)),
    choices.map(({ revision }) => revision),
    choices.map(({ who }) => encodeText(who)),
    ...joinBytes(group),
    grants.map(({ index }) => index + 1),
    grants.map(({ name }) => advisoryKey(name)),
    grants.map(({ name }) => encodeText(name)),
    grants.map(({ exclusive }) => exclusive),
    [...new Set(choices.flatMap(({ limits }) => (limits ? [limits.revision] : [])))],
    limits.map(({ index }) => index + 1),
    limits.map(({ key }) => encodeText(key)),
    limits.map(({ concurrency = null }) => concurrency),
    limits.map(({ rate }) => rate?.cost ?? null),
    limits.map(({ rate }) => rate?.burst ?? null),
    limits.map(({ rate }) => rate?.intervalMs ?? null),
  ]
}

/** Returns the resources that a claim of the posting is granted. */
export function toWantedGrants(posting: Posting): { readonly name: string; readonly exclusive: boolean }[] {
  const { exclusive, shared } = toResourceWants(posting)
  return [
    ...exclusive.map((name) => ({ name, exclusive: true })),
    ...shared.map((name) => ({ name, exclusive: false })),
  ]
}

/** The answer of the function `claim`. */
export interface ClaimAnswer {
  /** Whether the session is over; with it, or with a paused board, nothing is granted. */
  readonly over?: true
  readonly paused?: true
  /** Whether the fences have reached their maximum, so that nothing is granted. */
  readonly outOfFences?: true
  readonly granted?: readonly number[] | null
  readonly fences?: readonly number[] | null
  readonly refused?: readonly (readonly [number, 'gone' | 'changed' | 'waits'])[] | null
  readonly busy?: readonly (readonly [number, 'busy', string])[]
  /** Whether the limits have another revision, so that nothing is granted. */
  readonly limits?: true
  /** The limits that were reached, by the index of the job. */
  readonly limited?: readonly (readonly [number, { readonly reached: string; readonly until: number | null }])[] | null
  /** The new arrival times of keys, by the index of the job. */
  readonly arrivals?: readonly (readonly [number, readonly (readonly [string, number])[]])[] | null
}

/** Returns what became of each claim. @param session the session that claimed */
export function toClaimResults(
  answer: ClaimAnswer,
  choices: readonly ClaimRequest[],
  { session, board: { schema, number } }: { readonly session: OwnSession; readonly board: PostgresBoard },
): CommitResult<ClaimGrant>[] {
  const { over, paused, outOfFences, granted, fences, refused, busy, limited, arrivals } = answer
  const fenceOf = new Map(granted?.map((at, index) => [at, fences?.[index] ?? 0]))
  const reasons = new Map(refused)
  const resources = new Map(busy?.map(([at, , resource]) => [at, resource]))
  const reached = new Map(limited)
  const arrivalsOf = new Map(arrivals)
  return choices.map(({ posting, revision, limits }, at) => {
    const fence = fenceOf.get(at)
    if (fence !== undefined) {
      const taken = arrivalsOf.get(at)?.map(([key, arrivalMs]) => ({ key: decodeText(key), arrivalMs }))
      const grant = { session: session.label, revision: revision + 1, fence: BigInt(fence) }
      return { value: taken ? { ...grant, arrivals: taken } : grant }
    }
    const what = `claim of ${toJobName(posting)}`
    if (over) return { error: new NotConnected(`${what}: the session with the server is over`) }
    if (paused) return { error: refusalError(what, { why: 'paused' }) }
    if (answer.limits) return { error: refusalError(what, { why: 'limits' }) }
    if (outOfFences)
      return {
        error: new WritesRefused(
          `${what}: the fences of schema ${schema} have reached their maximum, so no job can be claimed: the last value of the sequence ` +
            `${schema}.fences and fence_base of board ${number} in ${schema}.boards add up to 2^53 or nearly that; set the sequence (setval) so ` +
            'that the sum is larger than every granted fence and smaller than 2^53, or move to another schema',
        ),
      }
    if (reasons.get(at) === 'gone') return { error: refusalError(what, { why: 'gone' }) }
    if (reasons.get(at) === 'waits') return { error: refusalError(what, { why: 'waits' }) }
    const limit = reached.get(at)
    if (limit) {
      const want = limits?.wants.find(({ key }) => encodeText(key) === limit.reached)
      return { error: limitReachedError(what, want, limit.until ?? undefined) }
    }
    const resource = resources.get(at)
    if (resource !== undefined) return { error: refusalError(what, { why: 'resource', resource }) }
    return { error: refusalError(what, { why: 'changed' }) }
  })
}
