/** Puts a board together: each part is made once, after the parts that it uses. */
import { Lifecycle } from '../../core/async/lifecycle.ts'
import type { Logger } from '../../core/log.ts'
import { assembleClaims, type ClaimParts } from '../claims/assemble-claims.ts'
import type { Backend } from '../contract/index.ts'
import { LimitBook } from '../limits/limit-book.ts'
import { Limits } from '../limits/limits.ts'
import { TokenTaker } from '../limits/token-taker.ts'
import { BoardRecords } from '../records/board-records.ts'
import { EntityRegistry } from '../records/entity-registry.ts'
import type { ScheduleHost } from '../schedules/schedule-host.ts'
import { Schedules } from '../schedules/schedules.ts'
import { FlowSettings } from '../settings/flow-settings.ts'
import { PostSettings } from '../settings/post-settings.ts'
import { FLOW_SETTINGS } from '../settings/record.ts'
import { LiveView } from '../view/live-view.ts'
import { Batches } from './batches/batches.ts'
import { BoardLife } from './board-life.ts'
import { DependencyResolver } from './dependency-resolver.ts'
import { detachedBackend } from './detached-backend.ts'
import { BackendEventRouter } from './events/backend-event-router.ts'
import { ErrorReporter } from './events/events.ts'
import { HealthCounters } from './events/health-counters.ts'
import { ViewEvents } from './events/view-events.ts'
import { Viewing } from './events/viewing.ts'
import { JobRequests } from './job-requests.ts'
import { Lookup } from './lookup.ts'
import { type BoardOptions, type BoardSettings, boardSettings } from './options.ts'
import { Pausing } from './pausing.ts'
import { OwnJobs } from './posting/own-jobs.ts'
import { OwnKeyWarning } from './posting/own-key-warning.ts'
import { PostRecorder } from './posting/post-recorder.ts'
import { Poster } from './posting/poster.ts'
import { toScheduleHost } from './schedule-host.ts'
import { TrashBox } from './trash.ts'

/** What all parts of a board are made with. */
interface BoardBase {
  readonly who: string
  readonly log: Logger
  readonly backend: Backend
  readonly lifecycle: Lifecycle
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly errorReporter: ErrorReporter
  readonly onError: (error: Error) => void
}

/** What a board stores beside its jobs, and what this process knows of the jobs. */
interface Knowledge {
  /** Schedules, limits, outlines of flows. */
  readonly records: BoardRecords
  readonly entities: EntityRegistry
  /** The limits as this process knows them. */
  readonly limitBook: LimitBook
  /** The settings of flows as this process knows them when it posts. */
  readonly postSettings: PostSettings
  readonly view: LiveView
  /** Finds jobs. */
  readonly lookup: Lookup
  readonly dependencies: DependencyResolver
}

/** What changes the jobs of a board. */
interface Operations {
  /** Claims jobs, and ends them. */
  readonly claims: ClaimParts
  readonly poster: Poster
  readonly ownJobs: OwnJobs
  readonly batches: Batches
  readonly trash: TrashBox
}

/** The parts of a board. */
export interface BoardParts extends BoardBase, Knowledge, Operations {
  readonly healthCounters: HealthCounters
  /** Receives what the backend reports, and keeps the state of the board. */
  readonly router: BackendEventRouter
  readonly life: BoardLife
  readonly viewing: Viewing
  readonly pausing: Pausing
  /** Requests about jobs that the caller names. */
  readonly requests: JobRequests
  readonly scheduleHost: ScheduleHost
  readonly schedules: Schedules
  readonly limits: Limits
  readonly flowSettings: FlowSettings
}

/** Makes the parts of a board that is not open yet. @throws TypeError unless `who` is a non-empty string; InvalidArgument for other options */
export function assembleBoard(given: Backend, options: BoardOptions = {}): BoardParts {
  const settings = boardSettings(options)
  const base = toBase(given, settings)
  const events = new ViewEvents(base)
  const known: BoardBase & Knowledge = { ...base, ...assembleKnowledge(base, { settings, events }) }
  const { backend, signal, view, limitBook } = known
  const tokens = new TokenTaker({ backend, book: limitBook, signal })
  const claims = assembleClaims({ ...known, limits: limitBook, keepHistory: settings.keepHistory })
  events.bind({ view, claims, tokens })
  const operations = assembleOperations(known, { claims, settings })
  return { ...known, ...operations, ...assembleServices({ ...known, ...operations }, tokens) }
}

function toBase(given: Backend, { who, log, telemetry }: BoardSettings): BoardBase {
  const backend = telemetry?.tracer ? detachedBackend(given, telemetry.tracer) : given
  const lifecycle = new Lifecycle(`board ${backend.uri}`)
  const errorReporter = new ErrorReporter(log)
  const onError = (error: Error) => errorReporter.report(error)
  return { who, log, backend, lifecycle, signal: lifecycle.signal, errorReporter, onError }
}

function assembleKnowledge(
  { backend, signal, onError }: BoardBase,
  { settings, events }: { readonly settings: BoardSettings; readonly events: ViewEvents },
): Knowledge {
  const records = new BoardRecords({ backend, signal, onError })
  const entities = new EntityRegistry({ entities: backend.entities, signal, onError })
  const limitBook = new LimitBook({ backend, records, onError, onRules: (rules) => events.rulesChanged(rules) })
  const watched = () => (limitBook.revision === undefined ? undefined : limitBook.flowRules)
  const postSettings = new PostSettings({
    ...{ backend, watched, store: records.of(FLOW_SETTINGS) },
    onUnreadable: (record) => records.report(FLOW_SETTINGS.name, record),
  })
  const view = new LiveView({
    ...{ backend, signal, listener: events, unacceptedAfter: settings.unacceptedAfter },
    limits: { open: () => limitBook.open('view'), close: () => limitBook.close('view') },
  })
  const lookup = new Lookup({ backend, view, signal })
  const dependencies = new DependencyResolver({ backend, lookup })
  return { records, entities, limitBook, postSettings, view, lookup, dependencies }
}

function assembleOperations(
  known: BoardBase & Knowledge,
  { claims, settings }: { readonly claims: ClaimParts; readonly settings: BoardSettings },
): Operations {
  const { backend, log, lookup, dependencies, lifecycle } = known
  const { telemetry } = settings
  const ownKey = new OwnKeyWarning({ log, holds: (entry) => claims.held.holds(entry) })
  const poster = new Poster({
    ...{ ...known, settings: known.postSettings },
    keyTaken: (entry, posting) => ownKey.warnIfOwnKey(entry, posting),
    heldMember: (batch) => claims.held.findMember(batch),
    endDoomed: (id) => claims.settler.doomed.end(id),
    recorder: telemetry && new PostRecorder({ telemetry, board: backend.uri, log }),
  })
  const ownJobs = new OwnJobs({ poster, lookup, claims })
  const batches = new Batches({
    ...{ ...known, poster },
    cancel: async (job, reason) => claims.canceller.cancel(await lookup.toOwnEntry(job), { reason }),
    assertRunning: () => lifecycle.assertRunning(),
  })
  return { claims, poster, ownJobs, batches, trash: new TrashBox({ backend, dependencies }) }
}

function assembleServices(
  parts: BoardBase & Knowledge & Operations,
  tokens: TokenTaker,
): Omit<BoardParts, keyof (BoardBase & Knowledge & Operations)> {
  const { backend, claims, errorReporter, log } = parts
  const { uri } = backend
  const healthCounters = new HealthCounters({ uri, log, errorReporter })
  const router = new BackendEventRouter({ ...parts, uri, healthCounters, batches: parts.batches.waits })
  const scheduleHost = toScheduleHost({ ...parts, canceller: claims.canceller })
  const limits = assembleLimits(parts, tokens)
  return {
    ...{ healthCounters, router, scheduleHost },
    life: new BoardLife({ ...parts, router, held: claims.held }),
    viewing: new Viewing(parts),
    pausing: new Pausing({ ...parts, router, limits }),
    requests: new JobRequests({ ...parts, router }),
    schedules: new Schedules(scheduleHost),
    limits,
    flowSettings: assembleFlowSettings(parts),
  }
}

function assembleFlowSettings({ backend, who, records, limitBook, postSettings }: BoardBase & Knowledge): FlowSettings {
  return new FlowSettings({
    ...{ uri: backend.uri, who, records },
    get shared() {
      return backend.shared
    },
    now: () => backend.clock.now(),
    readClock: () => backend.clock.read(),
    async refresh() {
      postSettings.expire()
      // The change is made. Without an answer, the watch of the limits takes it in later.
      if (limitBook.revision !== undefined) await limitBook.refresh().catch(() => undefined)
    },
  })
}

function assembleLimits(
  { backend, who, records, limitBook, lookup, lifecycle }: BoardBase & Knowledge,
  tokens: TokenTaker,
): Limits {
  return new Limits({
    ...{ uri: backend.uri, who, records },
    get isSupported() {
      return limitBook.isSupported
    },
    now: () => backend.clock.now(),
    readClock: () => backend.clock.read(),
    use: (keys) => backend.limits.use(keys),
    revision: () => backend.limits.revision(),
    applyRate: async (request) => void (await backend.limits.takeTokens(request)),
    async *unclaimed() {
      lifecycle.assertRunning()
      yield* lookup.jobs({ onlyUnclaimed: true, ensureFresh: true })
    },
    take: (key, call) => tokens.take(key, call),
  })
}
