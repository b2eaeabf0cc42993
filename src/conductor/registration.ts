/**
 * Registers a conductor on the board: an entity that shows its identity and its status.
 *
 * Changes are published at most every two seconds, and only if the status still differs then. Therefore, a very short
 * job costs no transaction, and a busy conductor costs one every two seconds.
 */
import { hostname } from 'node:os'
import type { DeclaredSchedules, JobBoard, RegisteredEntity, ServedQueues } from '../board/index.ts'
import { boardInternals } from '../board/internal.ts'
import { createDeferred } from '../core/async/abort.ts'
import { retry } from '../core/async/retry.ts'
import { Duplicate, isDate } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { defined } from '../core/options.ts'
import { packageVersion } from '../core/package-version.ts'
import { formatDuration, monotonic, toDate, withinTime } from '../core/time.ts'
import type { ChildStatus } from '../pool/index.ts'
import { toBoardLabel } from './boards/board-entries.ts'
import type { KnownFlows } from './claiming/known-flows.ts'
import type { ConductorCounts } from './counters.ts'
import type { IsolatedAtoms } from './isolation/isolated-atoms.ts'

/** The shortest period between two updates of the entity. */
const UPDATE_PERIOD_MS = 2_000
/** The longest period between two updates: the entity of a conductor that is idle shows that it is alive. */
const HEARTBEAT_PERIOD_MS = 60_000
/** The pause between two attempts to register under a name that is in use. */
const NAME_RETRY_MS = 250
/** The time limit for the server's answer to the removal. */
const UNREGISTER_TIMEOUT_MS = 5_000
/** The difference of clocks up to which no warning is needed: delays and ages go by the servers' clock. */
const TOLERATED_SKEW_MS = 2_000
/** The maximum number of running jobs whose UUIDs are published. */
const MAX_JOBS_SHOWN = 100
/** The maximum number of declared schedules whose ids are published. */
const MAX_SCHEDULES_SHOWN = 200

/** The status of a conductor. */
export interface ConductorStatus {
  readonly state: string
  /** The UUIDs of the running jobs. */
  readonly jobs: readonly string[]
  /** The UUIDs of the jobs that are settled, and whose tasks still keep slots. */
  readonly unended: readonly string[]
  readonly isolator: Pick<IsolatedAtoms, 'refusal' | 'children'> | undefined
  readonly counts: ConductorCounts
  /** The time at which it began to stop. */
  readonly drainingSince: Date | undefined
  readonly concurrency: number
  readonly storage: 'there' | 'away'
  /** The schedules that it declares. */
  readonly schedules: Required<DeclaredSchedules> | undefined
}

export interface RegistrationOptions {
  readonly board: JobBoard
  readonly name: string
  readonly flows: Pick<KnownFlows, 'names' | 'versions'>
  readonly log: Logger
  readonly queues?: ServedQueues | undefined
  /** The release of the application. */
  readonly release?: string | undefined
  readonly status: () => ConductorStatus
  readonly onError: (error: unknown) => void
}

export class Registration {
  readonly #options: RegistrationOptions
  readonly #startedAt = new Date()
  #clockAheadMs = 0
  #entity: RegisteredEntity | undefined
  #timer: NodeJS.Timeout | undefined
  #publishedStatus = ''
  #heartbeat: NodeJS.Timeout | undefined
  /** The last reported error: repeated attempts that fail with the same error report it once. */
  #fault = ''
  #unsubscribe: (() => void) | undefined

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  /**
   * Registers the conductor. Waits for the end of the former session when the name belongs to a process of this machine
   * that has ended.
   *
   * @throws Duplicate when a living conductor has the name; the signal's reason
   */
  async register(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { board } = this.#options
    await this.#checkClock()
    this.#entity = await this.#registerEntity(options.signal)
    this.#unsubscribe = board.on('state', ({ state }) => {
      if (state === 'connected') this.#republish()
    })
    this.statusChanged()
    this.#heartbeat = setInterval(() => {
      void this.#checkClock()
      this.#republish()
    }, HEARTBEAT_PERIOD_MS).unref()
  }

  /** The time by which the clock of this machine is ahead of the servers' clock, in milliseconds; 0 within a tolerance. */
  get clockAheadMs(): number {
    return this.#clockAheadMs
  }

  /** Compares the clocks, and warns once while they differ. No claim depends on the clock of this machine, but times that people see do. */
  async #checkClock(): Promise<void> {
    const { board, log, name } = this.#options
    // A board in memory has the clock of this process, or of a test.
    if (!boardInternals(board).hasServerClock) return
    const before = Date.now()
    const server = await boardInternals(board)
      .readClock()
      .catch(() => undefined)
    if (server === undefined) return
    const [least, most] = [before - server, Date.now() - server]
    const ahead = least > 0 ? least : most < 0 ? most : 0
    const isOff = Math.abs(ahead) > TOLERATED_SKEW_MS
    if (isOff && this.#clockAheadMs === 0) {
      const how = ahead > 0 ? 'ahead of' : 'behind'
      log.warn(
        { conductor: name, aheadMs: Math.round(ahead) },
        `the clock of this machine is ${formatDuration(Math.abs(ahead))} ${how} the servers' clock of the board: synchronize it, for example with NTP`,
      )
    }
    this.#clockAheadMs = isOff ? Math.round(ahead) : 0
  }

  async #registerEntity(signal: AbortSignal | undefined): Promise<RegisteredEntity> {
    const { board, name, log } = this.#options
    // Servers expire a session some time after its timeout.
    const deadline = monotonic() + 2 * (board.sessionTimeout ?? 0)
    const register = async () => {
      const metadata = this.#metadata()
      this.#publishedStatus = statusText(metadata)
      return board.registerEntity({ kind: 'conductor', name, metadata })
    }
    return retry(register, {
      ...{ firstPauseMs: NAME_RETRY_MS, maxPauseMs: NAME_RETRY_MS, jitter: 'none', signal },
      isRetryable: async (error) =>
        error instanceof Duplicate && monotonic() < deadline && (await this.#isOwnedByEndedProcess()),
      onRetry: (_, attempt) => {
        if (attempt === 1)
          log.warn({ conductor: name }, 'a former process with this name has ended: waiting until its session expires')
      },
    }).catch((error: unknown) => {
      if (error instanceof Duplicate) signal?.throwIfAborted()
      throw error
    })
  }

  /** Returns whether the name belongs to a process that has ended; its entity may have disappeared just now. */
  async #isOwnedByEndedProcess(): Promise<boolean> {
    const { board, name } = this.#options
    const registered = (await board.entities('conductor')).find((entity) => entity.name === name)
    return registered === undefined || isEndedLocalProcess(registered.metadata)
  }

  /** Schedules an update, because the status may have changed. */
  statusChanged(): void {
    if (!this.#entity) return
    this.#timer ??= setTimeout(() => this.#publish(), UPDATE_PERIOD_MS).unref()
  }

  /**
   * Removes the entity. Does not wait for a connection: the board's next connection, or the end of the session, removes
   * the entity. Nor does it wait for a connection that breaks meanwhile, or for a server that does not answer.
   */
  async unregister(): Promise<void> {
    clearTimeout(this.#timer)
    clearInterval(this.#heartbeat)
    this.#unsubscribe?.()
    const entity = this.#entity
    this.#entity = undefined
    const removed = this.#removeEntity(entity)
    const { board } = this.#options
    const disconnected = createDeferred()
    const off = board.on('state', () => board.connected || disconnected.resolve())
    if (board.connected) await withinTime(UNREGISTER_TIMEOUT_MS, Promise.race([removed, disconnected.promise]))
    off()
  }

  /** Removes an entity. Never rejects. */
  async #removeEntity(entity: RegisteredEntity | undefined): Promise<void> {
    try {
      await entity?.[Symbol.asyncDispose]()
    } catch (error) {
      if (this.#options.board.connected) this.#options.onError(error)
    }
  }

  /** Publishes the status again: the last update was lost, or belongs to a session that may be over. */
  #republish(): void {
    this.#publishedStatus = ''
    this.statusChanged()
  }

  #publish(): void {
    this.#timer = undefined
    const metadata = this.#metadata()
    const status = statusText(metadata)
    if (status === this.#publishedStatus || !this.#entity || !this.#options.board.connected) return
    this.#publishedStatus = status
    this.#entity.update(metadata).then(
      () => {
        this.#fault = ''
      },
      (error: unknown) => {
        // Another conductor may have taken the name while this session was expired, and may release it again.
        this.#republish()
        if (this.#entity && this.#options.board.connected) this.#reportError(error)
      },
    )
  }

  #reportError(error: unknown): void {
    const fault = String(error)
    if (fault !== this.#fault) this.#options.onError(error)
    this.#fault = fault
  }

  /** Returns the suspect that keeps others from running in this process, with its board if this is not the board of the registration. */
  #suspect():
    | { readonly job: string; readonly since: Date; readonly board?: string; readonly othersWait?: true }
    | undefined {
    const { board } = this.#options
    const { holder, othersWait } = boardInternals(board).suspects
    if (!holder) return undefined
    const elsewhere = holder.board === board.uri ? {} : { board: toBoardLabel(holder.board) }
    return { job: holder.uuid, since: toDate(holder.since), ...elsewhere, ...(othersWait ? { othersWait } : {}) }
  }

  #metadata(): Record<string, unknown> {
    const { flows, queues, release, status } = this.#options
    const { state, jobs, unended, isolator, counts, drainingSince, concurrency, schedules, storage } = status()
    return {
      host: hostname(),
      pid: process.pid,
      version: packageVersion(),
      flows: flows.names,
      versions: flows.versions,
      ...defined({
        queues,
        release,
        timeZones: process.versions['tz'],
        declares: schedules && toDeclares(schedules),
        suspect: this.#suspect(),
        clockAheadMs: this.#clockAheadMs === 0 ? undefined : this.#clockAheadMs,
        logbooks: storage === 'away' ? storage : undefined,
      }),
      concurrency,
      startedAt: this.#startedAt,
      reportedAt: toDate(boardInternals(this.#options.board).now),
      state,
      counts,
      ...defined({ drainingSince }),
      running: jobs.length,
      jobs: jobs.slice(0, MAX_JOBS_SHOWN),
      ...(unended.length > 0 && { unended: unended.slice(0, MAX_JOBS_SHOWN) }),
      ...(isolator && {
        children: isolator.children.map(toShownChild),
        ...defined({ noChild: isolator.refusal?.message }),
      }),
    }
  }
}

/** Returns what the entity shows of the declared schedules; without their ids if they are many. */
function toDeclares({ owner, declare }: Required<DeclaredSchedules>): {
  readonly owner: string
  readonly ids?: string[]
} {
  const ids = declare.flatMap(({ id, options: { tenants } }) =>
    tenants ? Object.keys(tenants).map((tenant) => `${id}/${tenant}`) : [id],
  )
  return ids.length > MAX_SCHEDULES_SHOWN ? { owner } : { owner, ids }
}

/**
 * Returns a text that changes when the entity must be updated. It omits the memory of children, which changes all the time: the next update
 * shows it.
 */
function statusText({
  state,
  jobs,
  running,
  unended,
  children,
  noChild,
  concurrency,
  declares,
  suspect,
  clockAheadMs,
  logbooks,
}: Record<string, unknown>): string {
  const shown = Array.isArray(children) ? children.map(({ memory: _, ...child }) => child) : undefined
  return JSON.stringify([
    state,
    running,
    jobs,
    unended,
    shown,
    noChild,
    concurrency,
    declares,
    suspect,
    clockAheadMs !== undefined,
    logbooks,
  ])
}

/** Returns what the entity shows of a child. */
function toShownChild({ number, pid, state, tasks, startedAt, memory }: ChildStatus): Record<string, unknown> {
  return { number, pid, state, tasks, startedAt, ...defined({ memory }) }
}

/**
 * Returns whether the process of a conductor ran on this machine and has ended, by a kill for example. Its entity remains until
 * its session expires; a process manager that restarts the process under its name would be refused until then.
 *
 * @param metadata the conductor's entity on the board
 */
export function isEndedLocalProcess({ host, pid, startedAt }: Readonly<Record<string, unknown>>): boolean {
  if (host !== hostname() || typeof pid !== 'number') return false
  // In a container each start of the process has the same id.
  if (pid === process.pid) return toTime(startedAt) < Date.now() - process.uptime() * 1_000
  return !isProcessAlive(pid)
}

/** Returns the time of a Date, or of its text: boards that hold JSON store it as text. */
function toTime(instant: unknown): number {
  return isDate(instant) ? instant.getTime() : typeof instant === 'string' ? Date.parse(instant) : Number.NaN
}

function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // The process exists, but this one may not signal it.
    return Object(error).code === 'EPERM'
  }
}
