/**
 * Claims jobs, and ends claims. Concurrent claims are sent together, and so are settlements: as one call of a function and one transaction;
 * each has its own answer.
 */
import { type CommitResult, ItemCommit } from '../../../core/async/group-commit.ts'
import type { HeldBackWrite } from '../../../core/async/held-back-write.ts'
import { encode } from '../../../core/codec.ts'
import { NotConnected, NotFound, Unclaimable } from '../../../core/errors.ts'
import { attempt, type Result, settleEach } from '../../../core/result.ts'
import { decodeText, encodeText, postgresPlace } from '../../../postgres/index.ts'
import type {
  BackendClaims,
  ClaimGrant,
  ClaimRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Settlement,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { encodeEndedJob, type HistoryEntry } from '../../model/ended-job.ts'
import { encodeLife, haveSameLife } from '../../model/posting/posting-codec.ts'
import { DEFAULT_QUEUE } from '../../model/queues.ts'
import { type ClaimAnswer, toClaimParameters, toClaimResults, toWantedGrants } from './commit/claim-calls.ts'
import { describeGroup, type Encoded, joinBytes, MAX_GROUP, retryEachAlone, toJobName } from './commit/grouping.ts'
import type { BoardWriter } from './commit/writer.ts'
import type { PostgresResources } from './resources.ts'
import type { OwnSession, PostgresBoard } from './store/board.ts'
import { jobNumber, jobNumbers } from './store/rows.ts'

/** The bytes that a lock on a resource counts as in a group: the server has room for a few thousand locks at once. */
const LOCK_COST_BYTES = 4 * 1_024

const NO_BYTES = new Uint8Array()

export class PostgresClaims implements BackendClaims {
  readonly #board: PostgresBoard
  readonly #writer: BoardWriter
  /** Holds the resources of claims as locks of the database. */
  readonly #resources: PostgresResources
  readonly recordedPlace: string
  readonly #claims: ItemCommit<Encoded<ClaimRequest>, ClaimGrant>
  /** Whether claims of this process may hold slots. */
  #hasTakenSlots = false
  readonly #settles: ItemCommit<Encoded<Settlement>, void>

  constructor(board: PostgresBoard, writer: BoardWriter, resources: PostgresResources) {
    this.#board = board
    this.#writer = writer
    this.#resources = resources
    this.recordedPlace = postgresPlace(board.options.location)
    this.#claims = new ItemCommit({
      commit: (group) => this.#lockAndClaim(group),
      bytesOf: ({ bytes, request }) => bytes.length + LOCK_COST_BYTES * toWantedGrants(request.posting).length,
      limits: MAX_GROUP,
      keyOf: ({ request }) => request.id,
      beforeAnswers: writer.caughtUp,
    })
    this.#settles = new ItemCommit<Encoded<Settlement>, void>({
      commit: (group) => this.#settleAll(group),
      bytesOf: ({ bytes, request }) =>
        bytes.length + (request.history?.job.results?.length ?? 0) + (recordOf(request)?.bytes ?? 0),
      limits: MAX_GROUP,
      keyOf: ({ request }) => request.id,
      beforeAnswers: writer.caughtUp,
    })
  }

  /** Resolves when no claim and no settlement is under way. */
  async idle(): Promise<void> {
    await Promise.all([this.#claims.idle, this.#settles.idle])
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    this.#board.assertOpen()
    let former: Encoded<ClaimRequest> | undefined
    const results = await settleEach(choices, (request) =>
      attempt(() => {
        const { posting } = request
        const alike = former && haveSameLife(former.request.posting, posting) ? former : undefined
        former = { request, bytes: alike?.bytes ?? encodeLife(posting, 'msgpack') }
        return this.#claims.add(former)
      }),
    )
    for (const [index, result] of results.entries()) {
      const { id = '' } = choices[index] ?? {}
      // The sink knows it already, unless the job was removed by hand.
      if ('error' in result && result.error instanceof NotFound)
        this.#board.sink.changes([{ kind: 'gone', id, again: true }])
    }
    return results
  }

  settle(request: Settlement): Promise<void> {
    return attempt(() => {
      this.#board.assertOpen()
      const bytes = request.kind === 'consume' ? NO_BYTES : encodeLife(request.posting, 'msgpack')
      return this.#settles.add({ request, bytes })
    })
  }

  /** Ends the claim of another owner. Its session still has the locks of its resources, and frees them when it receives the change. */
  async release({ id, revision, posting }: ReleaseRequest): Promise<ReleaseOutcome> {
    const values = [jobNumber(id), revision, encodeLife(posting, 'msgpack')]
    const answer = await this.#writer.call(`release of ${toJobName(posting)}`, 'release', values)
    return answer as ReleaseOutcome
  }

  async owner(id: string): Promise<string | undefined> {
    const text = 'SELECT who FROM @.jobs WHERE board = $1 AND id = $2 AND session IS NOT NULL'
    const [row] = await this.#board.ask(`looking for the owner of ${id}`, text, jobNumbers([id]))
    return row && decodeText(String(row['who']))
  }

  #lockAndClaim(group: readonly Encoded<ClaimRequest>[]): Promise<CommitResult<ClaimGrant>[]> {
    return retryEachAlone(group, async (all) => {
      const locked = await this.#resources.take(all.map(({ request }) => request))
      const unlocked = all.filter(({ request }) => !locked.has(request))
      const held = new Set(unlocked.map(({ request }) => request.id))
      try {
        const granted = unlocked.length > 0 ? await this.#claimLocked(unlocked) : []
        const results = new Map(unlocked.map((item, index) => [item.request, granted[index]]))
        for (const [{ id }, result] of results) if (result && 'value' in result) held.delete(id)
        return all.map(({ request }) => {
          const error = locked.get(request)
          return error ? { error } : (results.get(request) ?? { error: new Unclaimable('the claim has no answer') })
        })
      } finally {
        // What was not granted, or may not have been.
        await this.#resources.unlock([...held])
      }
    })
  }

  async #claimLocked(group: readonly Encoded<ClaimRequest>[]): Promise<CommitResult<ClaimGrant>[]> {
    const board = this.#board
    const { session } = board
    const choices = group.map(({ request }) => request)
    const what = describeGroup('claim', group)
    if (!session) throw new NotConnected(`${what}: no session with the server; nothing was done, try again`)
    const takesSlots = ({ limits }: ClaimRequest) => limits?.wants.some(({ concurrency }) => concurrency !== undefined)
    this.#hasTakenSlots ||= choices.some(takesSlots)
    const { answer } = await this.#writer.claims.send({
      what,
      name: 'claim',
      values: [session.id, ...toClaimParameters(group)],
    })
    const claimed = answer as ClaimAnswer
    if (claimed.over) this.#markLost(session)
    return toClaimResults(claimed, choices, { session, board })
  }

  /** Ends the session that the server no longer knows. */
  #markLost(session: OwnSession): void {
    session.markLost(new NotConnected(`${this.#board.uri}: another participant ended the session`))
  }

  #settleAll(group: readonly Encoded<Settlement>[]): Promise<CommitResult<void>[]> {
    return retryEachAlone(group, async (some) => {
      const { session } = this.#board
      const ours = some.filter(({ request }) => request.session === session?.label)
      const lost = new Set<Encoded<Settlement>>()
      // Jobs that are moved to other queues are settled by a function of their own.
      for (const part of [ours.filter((item) => !isMoved(item)), ours.filter(isMoved)])
        if (session && part.length > 0) for (const item of await this.#settleIn(session, part)) lost.add(item)
      return some.map((item) => {
        if (ours.includes(item) && !lost.has(item)) return { value: undefined }
        const { kind, posting } = item.request
        return { error: refusalError(`${kind} of ${toJobName(posting)}`, { why: 'lost' }) }
      })
    })
  }

  async #settleIn(
    session: OwnSession,
    items: readonly Encoded<Settlement>[],
  ): Promise<ReadonlySet<Encoded<Settlement>>> {
    const settlements = items.map(({ request }) => request)
    // A claim that follows this end at once must not find our locks.
    await this.#resources.unlock(settlements.map(({ id }) => id))
    const records = settlements.flatMap((settlement) => {
      const record = recordOf(settlement)
      return record ? { record, job: settlement.id } : []
    })
    const queues = items.some(isMoved) ? [settlements.map(toMovedColumn)] : []
    const { answer } = await this.#writer.others.send({
      what: describeGroup(settlements[0]?.kind ?? 'settle', items),
      name: queues.length > 0 ? 'settle_and_move' : records.length > 0 ? 'settle_recorded' : 'settle',
      values: [
        session.id,
        settlements.map(({ id }) => jobNumber(id)),
        ...this.#toSettleParameters(items),
        ...toRecordParameters(records),
        ...queues,
      ],
    })
    const { over, lost } = answer as { over?: true; lost?: number[] }
    this.#writer.reportDoomed(answer)
    if (over) this.#markLost(session)
    return new Set(items.filter((_, index) => over || lost?.includes(index)))
  }

  /** Returns the arguments of the function `settle` after the numbers of the jobs. */
  #toSettleParameters(items: readonly Encoded<Settlement>[]): unknown[] {
    const settlements = items.map(({ request }) => request)
    const revisions = settlements.map(({ revision }) => revision)
    const isHolding = this.#hasTakenSlots || settlements.some(({ posting }) => posting.resources !== undefined)
    const history = toHistoryParameters(settlements)
    const arePlain = settlements.every(({ kind, revision }) => kind === 'consume' && revision === revisions[0])
    if (arePlain && !isHolding)
      return [revisions.slice(0, 1), ['consume'], NO_BYTES, [], [], [], [], [], false, ...history]
    return [
      revisions,
      settlements.map(({ kind }) => kind),
      ...joinBytes(items),
      settlements.map(({ posting: { delay = null } }) => delay),
      settlements.map(({ who }) => encodeText(who)),
      settlements.map((settlement) => (settlement.kind === 'trash' ? encodeText(settlement.reason) : null)),
      settlements.map((settlement) =>
        settlement.kind === 'trash' && settlement.failure ? encode(settlement.failure, 'msgpack') : null,
      ),
      isHolding,
      ...history,
    ]
  }
}

function isMoved({ request }: Encoded<Settlement>): boolean {
  return request.kind === 'abandon' && request.movedTo !== undefined
}

/** Returns the queue to which a job is moved: empty for the default one, null if it stays. */
function toMovedColumn(settlement: Settlement): string | null {
  const queue = settlement.kind === 'abandon' ? settlement.movedTo : undefined
  return queue === undefined ? null : queue === DEFAULT_QUEUE ? '' : encodeText(queue)
}

function recordOf(settlement: Settlement): HeldBackWrite | undefined {
  return settlement.kind === 'consume' ? settlement.record : undefined
}

/** Returns the ends of flows as the last arguments of `settle_recorded`; nothing where there are none. */
function toRecordParameters(ends: readonly { readonly record: HeldBackWrite; readonly job: string }[]): unknown[] {
  const records = ends.map(({ record }) => record)
  return records[0] ? [ends.map(({ job }) => jobNumber(job)), ...records[0].toArguments(records)] : []
}

/** Returns what the end of jobs adds to the history: their uuids, their records, the lengths of these, and how many jobs are kept. */
function toHistoryParameters(
  ends: readonly { readonly history?: HistoryEntry | undefined; readonly posting: { readonly uuid: string } }[],
): [string[], Buffer, (number | null)[], number | null] {
  const records = ends.map(({ history }) => history && encodeEndedJob(history.job))
  const [entry] = ends.flatMap(({ history }) => history ?? [])
  return [
    ends.map(({ posting }) => encodeText(posting.uuid)),
    Buffer.concat(records.flatMap((record) => record ?? [])),
    records.map((record) => record?.length ?? null),
    entry?.keep ?? null,
  ]
}
