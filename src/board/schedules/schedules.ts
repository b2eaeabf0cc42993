/**
 * The schedules of a board, for people and programs: `board.schedules`. Every change is one transaction at the revision that was read;
 * if a firing or another change was faster, the schedule is read again.
 */
import { isDeepStrictEqual } from 'node:util'
import { Duplicate, IncompatibleVersion, NotFound, UnsupportedCapability } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { type Occurrence, type PreviewOptions, preview, type ScheduleSpec } from '../../schedule/index.ts'
import { isSameSpec, toOccurrences } from '../../schedule/internal.ts'
import { planNext } from './decide.ts'
import {
  type BackfillOptions,
  backfillSchedule,
  type Resumed,
  type ResumeScheduleOptions,
  resumeSchedule,
  triggerSchedule,
} from './manual-posts.ts'
import { DEFAULT_OWNER, isOver, NO_COUNTS, type ScheduleRecord } from './record.ts'
import { RuleCache } from './rule-cache.ts'
import {
  assertScheduleId,
  type DeclaredSchedule,
  type ScheduleChanges,
  type ScheduleDefinition,
  toDefinitions,
  withChanges,
  withScheduleId,
} from './schedule.ts'
import { MAX_ATTEMPTS, ScheduleEditor } from './schedule-editor.ts'
import type { ScheduleHost } from './schedule-host.ts'
import { type ScheduleView, toScheduleView } from './schedule-view.ts'

/** The options of `board.schedules.pause`. */
export interface PauseScheduleOptions {
  readonly reason?: string
  /** The person or program that pauses it; the name of this process by default. */
  readonly by?: string
}

/** The outcome of a put. `foreign`: another owner has declared the schedule. */
type PutOutcome = 'put' | 'unchanged' | 'newer' | 'foreign' | 'exists' | 'missing'

/** A schedule to put, and how: `put` creates or replaces, `add` only creates, `edit` only changes. */
type PutRequest =
  | ({ readonly mode: 'put'; readonly declared?: Declared } & EnabledDefinition)
  | ({ readonly mode: 'add' } & EnabledDefinition)
  | { readonly mode: 'edit'; readonly change: (known: ScheduleRecord) => ScheduleDefinition }

interface EnabledDefinition {
  readonly definition: ScheduleDefinition
  readonly isEnabled: boolean
}

/** Who has paused a schedule with `enabled: false`. */
const DECLARATION = 'its declaration'

/** The declaration of a schedule, if a program declares it at its start. */
type Declared = NonNullable<ScheduleRecord['declared']>

/** The schedules of a board: `board.schedules`. */
export class Schedules {
  readonly #host: ScheduleHost
  readonly #editor: ScheduleEditor
  /** The rules of schedules with `from: 'completion'`, which are looked at when a job ends. */
  readonly #rules = new RuleCache()

  /** @internal Use `board.schedules`. */
  constructor(host: ScheduleHost) {
    this.#host = host
    this.#editor = new ScheduleEditor(host)
  }

  /** Returns all schedules, ordered by their ids. @throws NotConnected */
  async list(): Promise<ScheduleView[]> {
    await this.#host.readClock()
    return (await this.#editor.store.list()).map((record) => toScheduleView(record, this.#host.now()))
  }

  /** Returns a schedule. @throws NotFound */
  async show(id: string): Promise<ScheduleView> {
    return toScheduleView(await this.#editor.read(id), this.#host.now())
  }

  /**
   * Creates a schedule, or changes the schedule with this id. A new or changed rule never posts jobs for times before the change; a pause stays.
   * With tenants, a schedule of each; after an error, the schedules before it are put.
   *
   * @throws InvalidArgument for an invalid spec; InvalidPosting, MissingDependencies for a store that the flow cannot use
   * @example await board.schedules.put(schedule('poll', { every: '5m' }, poll, {}))
   */
  async put(declared: DeclaredSchedule): Promise<void> {
    const { enabled: isEnabled = true } = declared.options
    for (const { id, ...definition } of await toDefinitions(declared))
      await this.#put(id, { mode: 'put', definition, isEnabled })
  }

  /**
   * Creates a schedule.
   *
   * @throws Duplicate if there is a schedule with this id; else as {@link put}
   */
  async add(declared: DeclaredSchedule): Promise<void> {
    const definitions = await toDefinitions(declared)
    const known = await Promise.all(definitions.map(({ id }) => this.#editor.store.get(id)))
    const taken = definitions.find((_, index) => known[index] !== undefined)
    // Before anything is put: with tenants, one of them may exist.
    if (taken) throw existsError(taken.id)
    const { enabled: isEnabled = true } = declared.options
    for (const { id, ...definition } of definitions)
      if ((await this.#put(id, { mode: 'add', definition, isEnabled })) === 'exists') throw existsError(id)
  }

  /**
   * Changes parts of a schedule. A changed rule counts from now; the history and a pause stay.
   *
   * @throws NotFound; InvalidArgument for an invalid change
   * @example await board.schedules.edit('nightly', { spec: { cron: '0 3 * * *' } })
   */
  async edit(id: string, changes: ScheduleChanges): Promise<void> {
    const outcome = await this.#put(id, { mode: 'edit', change: (known) => withChanges(id, known, changes) })
    if (outcome === 'missing') throw this.#editor.notFound(id)
  }

  /** @internal Puts one schedule of a declaration. @param options.declared by whom */
  async putDefinition(
    id: string,
    definition: ScheduleDefinition,
    options: { readonly declared: Declared; readonly isEnabled: boolean },
  ): Promise<PutOutcome> {
    return this.#put(id, { mode: 'put', definition, ...options })
  }

  /** Stops a schedule until {@link resume}; running jobs continue, and `trigger` still works. @throws NotFound */
  async pause(id: string, { reason, by = this.#host.who }: PauseScheduleOptions = {}): Promise<void> {
    await this.#editor.change(id, ({ value }) => {
      // A pause of the declaration would end with the declaration.
      if (value.paused && value.paused.by !== DECLARATION) return undefined
      const { next: _, ...rest } = value
      const paused = { since: this.#host.now(), by, ...defined({ reason }) }
      return { value: { ...rest, paused } }
    })
  }

  /**
   * Resumes a paused schedule. The times that have passed are counted as skipped, and none of them is posted unless that is asked for.
   *
   * @throws NotFound
   */
  resume(id: string, options: ResumeScheduleOptions = {}): Promise<Resumed> {
    return resumeSchedule(id, options, { host: this.#host, editor: this.#editor })
  }

  /**
   * Posts a job of the schedule now, also of a paused one. Its times stay as they are.
   *
   * @param options.store replaces parts of the store
   * @returns the uuid of the job
   * @throws NotFound; Duplicate where the overlap policy is `skip` or `queueOne`, and a job of the schedule is on the board
   */
  trigger(id: string, options: { readonly store?: object } = {}): Promise<string> {
    return triggerSchedule(id, options, { host: this.#host, editor: this.#editor })
  }

  /**
   * Posts a job for each time of the schedule between two instants, oldest first. They wait for each other unless jobs of the schedule may
   * overlap. Called again, it posts them again. After an error some are posted: `counts.backfilled` says how many.
   *
   * @returns the uuids of the jobs
   * @throws NotFound; InvalidArgument for more than 1,000 times
   */
  backfill(id: string, options: BackfillOptions): Promise<readonly string[]> {
    return backfillSchedule(id, options, { host: this.#host, editor: this.#editor })
  }

  /** Removes a schedule; its jobs stay on the board. @throws NotFound */
  remove(id: string): Promise<void> {
    return this.#editor.remove(id)
  }

  /** Returns the next times of a schedule, as if it were not paused. @throws NotFound */
  async next(id: string, count = 10): Promise<readonly Occurrence[]> {
    const { value } = await this.#editor.read(id)
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
    const noted = this.#editor.change(id, async ({ value }) => {
      const now = this.#host.now()
      const failuresInRow = failed === undefined ? value.failuresInRow : failed ? value.failuresInRow + 1 : 0
      const limit = value.policies.pauseAfterFailures
      const mustPause = limit !== undefined && failuresInRow >= limit && !value.paused
      const pause = { since: now, by: this.#host.who, reason: `${failuresInRow} jobs in a row have failed` }
      if (value.awaits !== uuid) {
        if (failuresInRow === value.failuresInRow) return undefined
        if (!mustPause) return { value: { ...value, failuresInRow } }
        const { next: _, ...rest } = value
        return { value: { ...rest, failuresInRow, paused: pause } }
      }
      const { awaits: _, next: _next, ...rest } = value
      const ended = { ...rest, failuresInRow, cursor: now }
      if (mustPause) return { value: { ...ended, paused: pause } }
      const isPlanned = !value.paused && !isOver(value)
      const rule = await this.#rules.ruleOf({ id, value })
      const next = isPlanned ? planNext(id, value.policies, { rule, cursor: now }) : undefined
      return { value: { ...ended, ...(next ? { next } : {}) } }
    })
    await noted.catch((error: unknown) => {
      if (!(error instanceof NotFound)) throw error
    })
  }

  /** Creates or replaces a schedule. @throws Conflict; InvalidArgument, UnsupportedCapability for what is put */
  async #put(id: string, request: PutRequest): Promise<PutOutcome> {
    assertScheduleId(id)
    const { store } = this.#editor
    const { mode } = request
    const declared = mode === 'put' ? request.declared : undefined
    await this.#host.readClock()
    const now = this.#host.now()
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const found = await store.get(id)
      if (found && mode === 'add') return 'exists'
      if (found && 'error' in found) {
        if (declared && found.error instanceof IncompatibleVersion) return 'newer'
        throw found.error
      }
      const known = found?.value
      const refusal = known && declared && compareDeclarations(known, declared)
      if (refusal === 'unchanged' && known && mode === 'put') {
        const value = withGiven(known, request.definition)
        if (!value || (await store.write([{ id, revision: found?.revision, value }])).done) return refusal
        continue
      }
      if (refusal) return refusal
      if (mode === 'edit' && !known) return 'missing'
      const definition = mode === 'edit' ? known && request.change(known) : request.definition
      if (!definition) return 'missing'
      this.#assertSupported(id, definition)
      const rule = await withScheduleId(id, () => toOccurrences(definition.spec, { now }))
      const paused = mode === 'edit' ? known?.paused : toPause(known, { isEnabled: request.isEnabled, now })
      const isResumed = known?.paused !== undefined && !paused
      const isSame = known !== undefined && isSameSpec(known.spec, definition.spec)
      const cursor = isSame && !isResumed ? known.cursor : now
      const awaits = isSame ? known.awaits : undefined
      const isWaiting = known && (awaits !== undefined || isOver({ ...known, ...definition }))
      const next = paused || isWaiting ? undefined : planNext(id, definition.policies, { rule, cursor })
      const value: ScheduleRecord = {
        ...{ counts: NO_COUNTS, recent: [], failuresInRow: 0, createdAt: now },
        ...(known && pickHistory(known)),
        ...(isResumed ? { failuresInRow: 0 } : {}),
        ...definition,
        cursor,
        ...defined({ next, awaits, paused, declared: declared ?? known?.declared }),
      }
      const written = await store.write([{ id, revision: found?.revision, value }])
      if (written.done) return 'put'
    }
    throw this.#editor.conflict(id)
  }

  /** Checks that the board can post the jobs of the schedule. @throws UnsupportedCapability */
  #assertSupported(id: string, { policies, job }: ScheduleDefinition): void {
    if (!this.#host.shared) return
    if (job.expiresAfter !== undefined)
      throw new UnsupportedCapability(
        `schedule ${id}: board ${this.#host.uri} does not support expiry; omit expiresAfter`,
        { capability: 'expiry' },
      )
    if (policies.overlap === 'allow' && !job.resources) return
    throw new UnsupportedCapability(
      `schedule ${id}: board ${this.#host.uri} has no keys and resources, by which jobs wait for each other; use overlap 'allow' and no resources`,
      { capability: 'keys' },
    )
  }

  async #preview(value: ScheduleRecord, count: number): Promise<readonly Occurrence[]> {
    if (count < 1) return []
    return preview(value.spec, { count, from: new Date(Math.max(this.#host.now(), value.cursor + 1)) })
  }
}

/** Returns why a declaration changes nothing; undefined if it may change the schedule. */
function compareDeclarations({ declared: known }: ScheduleRecord, declared: Declared): PutOutcome | undefined {
  if (!known) return undefined
  if (known.owner !== declared.owner && known.owner !== DEFAULT_OWNER) return 'foreign'
  if (known.version > declared.version) return 'newer'
  const isSame =
    known.digest === declared.digest && known.owner === declared.owner && known.version === declared.version
  return isSame ? 'unchanged' : undefined
}

/**
 * Returns the schedule with the list of the options that its declaration gives; undefined if it has this list. An earlier release has not stored it, and
 * the digest of a declaration does not depend on it.
 */
function withGiven(known: ScheduleRecord, { job }: ScheduleDefinition): ScheduleRecord | undefined {
  if (isDeepStrictEqual(known.job.explicit, job.explicit)) return undefined
  const { explicit: _, ...rest } = known.job
  return { ...known, job: { ...rest, ...defined({ explicit: job.explicit }) } }
}

function existsError(id: string): Duplicate {
  return new Duplicate(`schedule ${id} exists: edit it, or remove it first`)
}

/** Returns the pause of a schedule that is put: a pause of its declaration goes when the declaration does not ask for it any more. */
function toPause(
  known: ScheduleRecord | undefined,
  { isEnabled, now }: { readonly isEnabled: boolean; readonly now: number },
): ScheduleRecord['paused'] {
  const paused = known?.paused
  if (!isEnabled) return paused ?? { since: now, by: DECLARATION, reason: 'enabled: false' }
  return paused?.by === DECLARATION ? undefined : paused
}

/** Returns what an edit leaves as it is. */
function pickHistory({ counts, recent, failuresInRow, createdAt, last }: ScheduleRecord) {
  return { counts, recent, failuresInRow, createdAt, ...(last ? { last } : {}) }
}
