/**
 * The schedules of a board, for people and programs: `board.schedules`. Every change is one transaction at the revision that was read;
 * if a firing or another change was faster, the schedule is read again.
 */
import {
  Duplicate,
  IncompatibleVersion,
  InvalidArgument,
  NotFound,
  Unclaimable,
  UnsupportedCapability,
} from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { type Occurrence, type PreviewOptions, preview, type ScheduleSpec } from '../../schedule/index.ts'
import { followsCompletion, isSameSchedule, toInstant, zoneOf } from '../../schedule/internal.ts'
import type { PostRequest } from '../backend.ts'
import type { BoardRecord, ReadRecord, RecordStore } from '../records/record-store.ts'
import { countTimes, planNext } from './decide.ts'
import { cancelPrevious, countSkipped, keysFor } from './firing.ts'
import { DEFAULT_OWNER, type Firing, NO_COUNTS, SCHEDULES, type ScheduleRecord, withRecent } from './record.ts'
import { RuleCache } from './rule-cache.ts'
import {
  assertScheduleId,
  type DeclaredSchedule,
  type ScheduleChanges,
  type ScheduleDefinition,
  toDefinitions,
  withChanges,
} from './schedule.ts'
import type { ScheduleHost } from './schedule-host.ts'
import { type ScheduleView, toScheduleView } from './schedule-view.ts'
import { postsPerWrite, toScheduledPost } from './scheduled-post.ts'

/** A change is tried again so often when others are faster: a schedule changes some times a second at most. */
const MAX_ROUNDS = 20
/** The greatest number of jobs of a backfill. */
const MAX_BACKFILL = 1_000

/** The options of `board.schedules.pause`. */
export interface PauseScheduleOptions {
  readonly reason?: string
}

/** The options of `board.schedules.resume`. */
export interface ResumeScheduleOptions {
  /** `latest` posts the newest of the times that have passed meanwhile; by default none is made up. */
  readonly catchUp?: 'none' | 'latest'
}

/** The options of `board.schedules.backfill`. */
export interface BackfillOptions {
  /** The first nominal time; a text without an offset is a local time of the schedule's zone. */
  readonly from: string | Date
  /** The last nominal time; now by default, and at the latest. */
  readonly to?: string | Date
}

/** `foreign`: another owner has declared it. */
type PutOutcome = 'put' | 'unchanged' | 'newer' | 'foreign' | 'exists'

interface PutMode {
  /** `add` refuses a schedule that exists, `edit` one that does not. */
  readonly mode: 'put' | 'add' | 'edit'
  /** By whom, if a program declares it at its start. */
  readonly declared?: NonNullable<ScheduleRecord['declared']>
}

interface Change {
  readonly value: ScheduleRecord | undefined
  readonly posts?: readonly PostRequest[]
}

/** The schedules of a board: `board.schedules`. */
export class Schedules {
  readonly #host: ScheduleHost
  readonly #store: RecordStore<ScheduleRecord>
  readonly #rules = new RuleCache()

  /** @internal Use `board.schedules`. */
  constructor(host: ScheduleHost) {
    this.#host = host
    this.#store = host.records.of(SCHEDULES)
  }

  /** Returns all schedules, ordered by their ids. @throws UnsupportedCapability, NotConnected */
  async list(): Promise<ScheduleView[]> {
    await this.#host.readClock()
    return (await this.#store.list()).map((record) => toScheduleView(record, this.#host.now()))
  }

  /** Returns a schedule. @throws NotFound */
  async show(id: string): Promise<ScheduleView> {
    return toScheduleView(await this.#read(id), this.#host.now())
  }

  /**
   * Creates a schedule, or changes the one with this id. A new or changed rule never fires for the past; a pause stays.
   *
   * @throws InvalidArgument for an invalid spec; InvalidPosting, MissingDependencies for a store that the flow cannot use
   * @example await board.schedules.put(schedule('poll', { every: '5m' }, poll, {}))
   */
  async put(declared: DeclaredSchedule): Promise<void> {
    for (const { id, ...definition } of await toDefinitions(declared)) await this.#put(id, definition, { mode: 'put' })
  }

  /**
   * Creates a schedule.
   *
   * @throws Duplicate if there is one with this id; else as {@link put}
   */
  async add(declared: DeclaredSchedule): Promise<void> {
    for (const { id, ...definition } of await toDefinitions(declared))
      if ((await this.#put(id, definition, { mode: 'add' })) === 'exists')
        throw new Duplicate(`schedule ${id} exists: edit it, or remove it first`)
  }

  /**
   * Changes parts of a schedule. A changed rule counts from now; the history and a pause stay.
   *
   * @throws NotFound; InvalidArgument for an invalid change
   * @example await board.schedules.edit('nightly', { spec: { cron: '0 3 * * *' } })
   */
  async edit(id: string, changes: ScheduleChanges): Promise<void> {
    await this.#put(id, (known) => withChanges(id, known, changes), { mode: 'edit' })
  }

  /** @internal Puts one schedule of a declaration. @param declared by whom, if a program declares it at its start */
  async putDefinition(
    id: string,
    definition: ScheduleDefinition,
    declared: NonNullable<ScheduleRecord['declared']>,
  ): Promise<PutOutcome> {
    return this.#put(id, definition, { mode: 'put', declared })
  }

  /** Stops a schedule until {@link resume}; running jobs continue, and `trigger` still works. @throws NotFound */
  async pause(id: string, { reason }: PauseScheduleOptions = {}): Promise<void> {
    await this.#change(id, ({ value }) => {
      if (value.paused) return undefined
      const { next: _, ...rest } = value
      const paused = { since: this.#host.now(), by: this.#host.who, ...defined({ reason }) }
      return { value: { ...rest, paused } }
    })
  }

  /**
   * Resumes a paused schedule. The times that have passed are counted as skipped, and made up only if that is asked for.
   *
   * @returns how many times have passed, and whether the newest was posted
   * @throws NotFound
   */
  async resume(
    id: string,
    { catchUp = 'none' }: ResumeScheduleOptions = {},
  ): Promise<{ readonly passed: number; readonly posted?: string }> {
    if (catchUp !== 'none' && catchUp !== 'latest')
      throw new InvalidArgument(`resume: catchUp must be 'none' or 'latest', got ${JSON.stringify(catchUp)}`)
    let passed = 0
    let posted: string | undefined
    const outcome = await this.#changeWithKey(id, async ({ value }, key) => {
      posted = undefined
      if (!value.paused) return undefined
      const now = this.#host.now()
      const rule = await this.#rules.ruleOf({ id, value })
      const isSpaced = followsCompletion(value.spec)
      passed = isSpaced ? 0 : countTimes(rule, { after: value.cursor, until: now })
      const { paused: _, ...rest } = value
      const resumed = { ...rest, cursor: now, failuresInRow: 0 }
      const hasEnded = isOver(value)
      const isPlanned = value.awaits === undefined && !hasEnded
      const next = isPlanned ? planNext(id, value.policies, { rule, cursor: now }) : undefined
      const newest = catchUp === 'latest' && passed > 0 && !hasEnded ? rule.last(now) : undefined
      const counts = countSkipped(value.counts, [
        { reason: 'paused', count: newest === undefined ? passed : passed - 1 },
      ])
      if (newest === undefined) return { value: { ...resumed, counts, ...(next ? { next } : {}) } }
      const post = toScheduledPost(id, value, { nominal: newest, now, why: 'time', key, missed: passed - 1 })
      posted = post.posting.uuid
      const firing: Firing = { nominal: newest, at: now, why: 'time', uuid: posted }
      const made = { ...counts, fired: counts.fired + 1, late: counts.late + 1 }
      const recent = withRecent([firing], value)
      const isLast = isOver({ ...value, counts: made })
      return { value: { ...resumed, counts: made, recent, ...(next && !isLast ? { next } : {}) }, posts: [post] }
    })
    // A job of the schedule is on the board: the overlap policy allows no other.
    if (outcome === 'key taken') return this.resume(id)
    return { passed, ...defined({ posted }) }
  }

  /**
   * Posts a job of the schedule now, also of a paused one. Its times stay as they are.
   *
   * @param options.store replaces parts of the store
   * @returns the uuid of the job
   * @throws NotFound; Duplicate where the overlap policy is `skip` or `queueOne`, and a job of the schedule is on the board
   */
  async trigger(id: string, { store }: { readonly store?: object } = {}): Promise<string> {
    let uuid = ''
    const outcome = await this.#changeWithKey(id, async (record, key) => {
      const { value } = record
      const now = this.#host.now()
      if (value.policies.overlap === 'cancelPrevious') await this.#cancelPrevious(record)
      const salt = String(value.counts.manual)
      const post = toScheduledPost(id, value, { nominal: now, now, why: 'manual', key, salt, ...defined({ store }) })
      uuid = post.posting.uuid
      const firing: Firing = { nominal: now, at: now, why: 'manual', uuid }
      const counts = { ...value.counts, manual: value.counts.manual + 1 }
      return { value: { ...value, counts, recent: withRecent([firing], value) }, posts: [post] }
    })
    if (outcome === 'key taken')
      throw new Duplicate(`schedule ${id}: a job of it is on the board, and its overlap policy allows no further one`)
    return uuid
  }

  /**
   * Posts a job for each time of the schedule between two instants, oldest first. They wait for each other unless jobs of the schedule may
   * overlap. Called again, it posts them again.
   *
   * @returns the uuids of the jobs
   * @throws NotFound; InvalidArgument for more than 1,000 times
   */
  async backfill(id: string, options: BackfillOptions): Promise<readonly string[]> {
    const { value } = await this.#read(id)
    if (followsCompletion(value.spec))
      throw new InvalidArgument(`schedule ${id} has no times of its own: each follows the end of a job`)
    const times = await this.#timesBetween(id, value, options)
    const uuids: string[] = []
    const most = postsPerWrite(value)
    for (let first = 0; first < times.length; first += most) {
      const chunk = times.slice(first, first + most)
      let posts: PostRequest[] = []
      await this.#change(id, (record) => {
        const now = this.#host.now()
        const salt = String(record.value.counts.backfilled)
        posts = chunk.map((nominal) => toScheduledPost(id, record.value, { nominal, now, why: 'backfill', salt }))
        const firings = posts.map(({ posting }, index): Firing => {
          return { nominal: chunk[index] ?? now, at: now, why: 'backfill', uuid: posting.uuid }
        })
        const counts = { ...record.value.counts, backfilled: record.value.counts.backfilled + posts.length }
        return { value: { ...record.value, counts, recent: withRecent(firings.reverse(), record.value) }, posts }
      })
      uuids.push(...posts.map(({ posting }) => posting.uuid))
    }
    return uuids
  }

  /** Removes a schedule; its jobs stay on the board. @throws NotFound */
  async remove(id: string): Promise<void> {
    await this.#change(id, () => ({ value: undefined }), { isReadable: false })
  }

  /** Returns the next times of a schedule, without those of a pause. @throws NotFound */
  async next(id: string, count = 10): Promise<readonly Occurrence[]> {
    const { value } = await this.#read(id)
    if (value.policies.times !== undefined)
      return this.#preview(value, Math.min(count, value.policies.times - value.counts.fired))
    return this.#preview(value, count)
  }

  /** Lists when a spec would fire; needs no schedule. @throws InvalidArgument */
  preview(spec: ScheduleSpec, options: PreviewOptions = {}): Promise<readonly Occurrence[]> {
    return preview(spec, { from: new Date(this.#host.now()), ...options })
  }

  /**
   * @internal Notes that a job of the schedule has ended: the next time follows from that with `from: 'completion'`, and a pause from
   * failures in a row.
   *
   * @param options.failed undefined where it is not known
   */
  async jobEnded(id: string, { uuid, failed }: { readonly uuid: string; readonly failed?: boolean }): Promise<void> {
    const noted = this.#change(id, async ({ value }) => {
      const now = this.#host.now()
      const { awaits, ...rest } = value
      const isAwaited = awaits === uuid
      const limit = value.policies.pauseAfterFailures
      const failuresInRow = failed === undefined ? value.failuresInRow : failed ? value.failuresInRow + 1 : 0
      if (!isAwaited && failuresInRow === value.failuresInRow) return undefined
      const rule = await this.#rules.ruleOf({ id, value })
      const next = isAwaited && !value.paused ? planNext(id, value.policies, { rule, cursor: now }) : value.next
      const { next: _, ...others } = isAwaited ? rest : value
      const mustPause = limit !== undefined && failuresInRow >= limit && !value.paused
      const reason = `${failuresInRow} jobs in a row have failed`
      if (mustPause) return { value: { ...others, failuresInRow, paused: { since: now, by: this.#host.who, reason } } }
      return { value: { ...others, failuresInRow, ...(isAwaited ? { cursor: now } : {}), ...(next ? { next } : {}) } }
    })
    await noted.catch((error: unknown) => {
      if (!(error instanceof NotFound)) throw error
    })
  }

  /** @param definition the new definition, or what makes it of the present one */
  async #put(
    id: string,
    definition: ScheduleDefinition | ((known: ScheduleRecord) => ScheduleDefinition),
    { mode, declared }: PutMode,
  ): Promise<PutOutcome> {
    assertScheduleId(id)
    await this.#host.readClock()
    const now = this.#host.now()
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const found = await this.#store.get(id)
      if (found && mode === 'add') return 'exists'
      if (found && 'error' in found) {
        if (declared && found.error instanceof IncompatibleVersion) return 'newer'
        throw found.error
      }
      if (!found && mode === 'edit') throw this.#notFound(id)
      const known = found?.value
      if (known?.declared && declared) {
        const { owner } = known.declared
        if (owner !== declared.owner && owner !== DEFAULT_OWNER) return 'foreign'
        if (known.declared.version > declared.version) return 'newer'
        const isSame = known.declared.digest === declared.digest && known.declared.owner === declared.owner
        if (isSame && known.declared.version === declared.version) return 'unchanged'
      }
      const changed = typeof definition === 'function' ? definition(known ?? this.#missing(id)) : definition
      this.#assertSupported(id, changed)
      const rule = await this.#rules.compute(changed.spec, now)
      const isSameSpec = known !== undefined && isSameSchedule(known.spec, changed.spec)
      const cursor = isSameSpec ? known.cursor : now
      const awaits = isSameSpec ? known.awaits : undefined
      const isWaiting =
        known?.paused !== undefined || awaits !== undefined || (known !== undefined && isOver({ ...known, ...changed }))
      const next = isWaiting ? undefined : planNext(id, changed.policies, { rule, cursor })
      const value: ScheduleRecord = {
        ...{ counts: NO_COUNTS, recent: [], failuresInRow: 0, createdAt: now },
        ...(known && pickHistory(known)),
        ...changed,
        cursor,
        ...defined({ next, awaits, declared: declared ?? known?.declared }),
      }
      const written = await this.#store.write([{ id, revision: found?.revision, value }])
      if (written.done) return 'put'
    }
    throw this.#tooManyRounds(id)
  }

  /** @throws UnsupportedCapability for jobs that need what the board does not have */
  #assertSupported(id: string, { policies, job }: ScheduleDefinition): void {
    const { keys, resources } = this.#host.capabilities
    if (policies.overlap === 'allow' ? resources || !job.resources : keys && resources) return
    throw new UnsupportedCapability(
      `schedule ${id}: board ${this.#host.uri} has no keys and resources, by which jobs wait for each other; use overlap 'allow' and no resources`,
      { capability: keys ? 'resources' : 'keys' },
    )
  }

  async #preview(value: ScheduleRecord, count: number): Promise<readonly Occurrence[]> {
    if (count < 1) return []
    return preview(value.spec, { count, from: new Date(Math.max(this.#host.now(), value.cursor + 1)) })
  }

  async #timesBetween(id: string, { spec, createdAt }: ScheduleRecord, options: BackfillOptions): Promise<number[]> {
    const zone = zoneOf(spec)
    const from = toInstant(options.from, { zone, what: 'from' })
    const now = this.#host.now()
    const to = options.to === undefined ? now : Math.min(now, toInstant(options.to, { zone, what: 'to' }))
    if (to < from)
      throw new InvalidArgument(`backfill of schedule ${id}: to must not be before from, nor from in the future`)
    const rule = await this.#rules.compute(spec, createdAt)
    const times: number[] = []
    for (let at = rule.next(from - 1); at !== undefined && at <= to; at = rule.next(at)) {
      times.push(at)
      if (times.length > MAX_BACKFILL)
        throw new InvalidArgument(
          `backfill of schedule ${id}: there are more than ${MAX_BACKFILL} times between from and to; take a shorter span`,
        )
    }
    return times
  }

  #cancelPrevious(record: BoardRecord<ScheduleRecord>): Promise<void> {
    return cancelPrevious(record, { cancel: (uuid, reason) => this.#host.cancelJob(uuid, reason) })
  }

  async #read(id: string): Promise<BoardRecord<ScheduleRecord>> {
    const found = await this.#find(id)
    if ('error' in found) throw found.error
    return found
  }

  async #find(id: string): Promise<ReadRecord<ScheduleRecord>> {
    assertScheduleId(id)
    await this.#host.readClock()
    const found = await this.#store.get(id)
    if (found) return found
    throw this.#notFound(id)
  }

  /** Changes a schedule that may post a job with one of the keys of its overlap policy. */
  async #changeWithKey(
    id: string,
    change: (record: BoardRecord<ScheduleRecord>, key: string | undefined) => Promise<Change | undefined>,
  ): Promise<'done' | 'key taken'> {
    const { value } = await this.#read(id)
    for (const key of keysFor(id, value.policies.overlap)) {
      const outcome = await this.#change(id, (record) => change(record, key))
      if (outcome === 'done') return outcome
    }
    return 'key taken'
  }

  /** @param change returns undefined to leave the schedule as it is */
  async #change(
    id: string,
    change: (record: BoardRecord<ScheduleRecord>) => Promise<Change | undefined> | Change | undefined,
    { isReadable = true }: { readonly isReadable?: boolean } = {},
  ): Promise<'done' | 'key taken'> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const record = await this.#find(id)
      if ('error' in record && isReadable) throw record.error
      const changed = await change(record as BoardRecord<ScheduleRecord>)
      if (!changed) return 'done'
      const written = await this.#store.write([{ id, revision: record.revision, value: changed.value }], changed.posts)
      if (written.done) return 'done'
      if ('key' in written.conflict) return 'key taken'
    }
    throw this.#tooManyRounds(id)
  }

  #missing(id: string): never {
    throw this.#notFound(id)
  }

  #notFound(id: string): NotFound {
    return new NotFound(`there is no schedule ${id} on board ${this.#host.uri}; jobboard schedule list shows them`)
  }

  #tooManyRounds(id: string): Unclaimable {
    return new Unclaimable(`schedule ${id} was changed by others ${MAX_ROUNDS} times meanwhile; try again`)
  }
}

/** Returns what an edit leaves as it is. */
function pickHistory({ counts, recent, failuresInRow, createdAt, paused }: ScheduleRecord) {
  return { counts, recent, failuresInRow, createdAt, ...(paused ? { paused } : {}) }
}

/** Whether the schedule has posted as many jobs as it may. */
function isOver({ counts, policies: { times } }: Pick<ScheduleRecord, 'counts' | 'policies'>): boolean {
  return times !== undefined && counts.fired >= times
}
