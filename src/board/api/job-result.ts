/**
 * Reads the results of a job by its state, and not by events: it may end before, during or after the call.
 *
 * | the job | what is read | answer |
 * |---|---|---|
 * | is on the board | its end is awaited; then as below | |
 * | is done, and its flow or owner keeps results on the board | the history | the results |
 * | is done, and logbooks and flow are given | the logbook | the results |
 * | is done otherwise | | ResultNotKept |
 * | is in the trash, was purged from it, or was reverted | history, trash and logbook | JobFailed, with reason and failures |
 * | is nowhere | | NotFound |
 */
import { answerInTime } from '../../core/async/abort.ts'
import { IncompatibleVersion, InvalidArgument, NotFound, ResultNotKept, Timeout } from '../../core/errors.ts'
import { type Failure, JobFailed } from '../../core/failure.ts'
import { parseReference } from '../../core/job-names.ts'
import { assertOptions, defined } from '../../core/options.ts'
import { isFinished } from '../../core/states.ts'
import { monotonic, toMilliseconds } from '../../core/time.ts'
import { type AnyFlow, collectProvided, compile, type Flow } from '../../flow/index.ts'
import type { Backend } from '../contract/index.ts'
import type { Job, WaitOptions } from '../jobs/job.ts'
import { toLogbookText } from '../model/board-id.ts'
import { type EndedJob, isCancellation, type KeptResults, keptResultsOf } from '../model/ended-job.ts'
import { toFlowReference } from '../model/flow-reference.ts'

/** The time limit, and where else to look than on the board. */
export interface ResultOptions<R = Record<string, unknown>> extends WaitOptions {
  /** The flow of the job: it gives the results their type, and their names where they are read from the logbook. */
  readonly flow?: Flow<never, R, never>
  /**
   * The logbooks of the conductors: for flows whose results are not kept on the board, with `flow`; and for results that the logbooks' codec has
   * sealed. `openPersistence` returns it.
   */
  readonly persistence?: ResultLogbooks
  /** The UUID of the job's logbook, where `post` was given one; the job's own by default. */
  readonly book?: string
}

/** The results of a job that is done. */
export interface JobResult<R = Record<string, unknown>> {
  readonly uuid: string
  /** What the tasks of the flow provide, by name. They may contain secrets. */
  readonly results: R
}

/** The part of `Persistence` by which results are read. */
export interface ResultLogbooks {
  getBook(uuid: string): Promise<{ readonly flows: readonly LoggedFlow[]; readonly meta?: LoggedFlow['meta'] }>
  /** Undoes the codecs. Absent where results that are sealed cannot be read. */
  unsealResults?(
    kept: Exclude<KeptResults, { readonly notKept: string }>,
    place: { readonly book: string; readonly flow: string },
  ): Readonly<Record<string, unknown>>
}

/** The fields of a flow in a logbook that are read. */
export interface LoggedFlow {
  readonly uuid: string
  readonly name: string
  readonly version: string
  readonly state: string
  readonly atoms: readonly LoggedAtom[]
  /** The meta of its logbook. */
  readonly meta?: Readonly<Record<string, unknown>>
}

interface LoggedAtom {
  readonly name: string
  readonly state: string
  readonly result?: unknown
  readonly failure?: Failure
  readonly revertFailure?: Failure
}

export interface ResultContext {
  readonly backend: Pick<Backend, 'history' | 'trash' | 'uri' | 'clock'>
  readonly find: (reference: string) => Promise<Job>
}

/** The end of a job, as the board or its history knows it. */
interface KnownEnd {
  readonly outcome: 'COMPLETE' | 'TRASHED'
  readonly reason?: string | undefined
  readonly results?: Uint8Array
  readonly resultsUntil?: number
  /** The flow that the posting named, and its version. */
  readonly flow?: string | undefined
  readonly version?: string | undefined
}

/** Waits for the end of the job, and returns its results. @throws as `JobBoard.result` */
export function waitForResult<R>(
  job: Job | string,
  options: ResultOptions<R>,
  context: ResultContext,
): Promise<JobResult<R>> {
  const late = (time: string) =>
    new Timeout(`job ${typeof job === 'string' ? job : job.uuid}: no result within ${time}`)
  return answerInTime(options, { work: () => readResult(job, options, context), late })
}

/** @throws JobFailed, ResultNotKept, NotFound, Timeout; what board and logbooks throw */
async function readResult<R>(
  job: Job | string,
  options: ResultOptions<R>,
  { backend, find }: ResultContext,
): Promise<JobResult<R>> {
  assertResultOptions(options)
  const { timeout, signal, persistence } = options
  const end = timeout === undefined ? undefined : monotonic() + toMilliseconds(timeout, 'timeout')
  const toWait = (): WaitOptions => ({
    ...defined({ signal, timeout: end === undefined ? undefined : Math.max(0, end - monotonic()) }),
  })
  const { uuid } = parseReference(typeof job === 'string' ? job : job.uuid)
  let found = typeof job === 'string' ? await findUnlessGone(job, find) : job
  for (;;) {
    signal?.throwIfAborted()
    const outcome = await found?.wait(toWait())
    const [record] = await backend.history.find([uuid])
    const seen = toKnownEnd(record, { outcome, job: found })
    // The history may have forgotten the job, or never had it: then the trash says why it failed.
    let known = record || seen?.outcome === 'COMPLETE' ? seen : ((await findTrashedEnd(uuid, backend)) ?? seen)
    if (known?.outcome !== 'COMPLETE') {
      // The job may have been restored from the trash since, or have been posted again.
      const again = await findUnlessGone(uuid, find)
      if (again) {
        found = again
        continue
      }
      // It may also be done since.
      const [newest] = await backend.history.find([uuid])
      if (newest?.outcome === 'COMPLETE') known = newest
    }
    const book = options.book ?? found?.book.uuid ?? uuid
    if (known?.outcome === 'COMPLETE') assertSameFlow(uuid, known, options.flow)
    const kept =
      known?.outcome === 'COMPLETE'
        ? toResults(uuid, { known, now: backend.clock.now(), book, persistence })
        : undefined
    if (kept) return { uuid, results: kept as R }
    const logged = await readLoggedFlow({ uuid, book, persistence })
    return { uuid, results: readLogged(uuid, { logged, known, flow: options.flow, uri: backend.uri }) as R }
  }
}

function assertResultOptions<R>({ flow, persistence, ...rest }: ResultOptions<R>): void {
  assertOptions(rest, { timeout: true, signal: true, book: true }, 'result')
  if (flow !== undefined && flow?.kind !== 'flow')
    throw new InvalidArgument('result: flow must be a flow, as linear(…) makes it')
  if (persistence !== undefined && typeof persistence?.getBook !== 'function')
    throw new InvalidArgument('result: persistence must be logbooks, as openPersistence returns them')
}

/** Returns the end of a job in the trash. */
async function findTrashedEnd(uuid: string, backend: Pick<Backend, 'trash'>): Promise<KnownEnd | undefined> {
  const trashed = await backend.trash.find(uuid)
  return trashed && { outcome: 'TRASHED', reason: trashed.reason }
}

async function findUnlessGone(reference: string, find: ResultContext['find']): Promise<Job | undefined> {
  try {
    return await find(reference)
  } catch (error) {
    if (error instanceof NotFound) return undefined
    throw error
  }
}

/**
 * The board knows best how a job has ended that was seen on it; the history has the results. A job that was seen in the trash may have been
 * restored, and be done since: nothing follows that end.
 */
function toKnownEnd(
  record: EndedJob | undefined,
  { outcome, job }: { readonly outcome: KnownEnd['outcome'] | undefined; readonly job: Job | undefined },
): KnownEnd | undefined {
  if (record && (outcome !== 'COMPLETE' || record.outcome === 'COMPLETE')) return record
  const { flow, version } = (job && toFlowReference(job)) ?? {}
  return outcome && { outcome, reason: job?.attempts.at(-1)?.reason, flow, version }
}

/**
 * Refuses results of another flow, or of another version of the flow, as they exist while a new version is rolled out: the caller's type
 * would be wrong for them. Records of older releases name no version, and are accepted.
 *
 * @throws InvalidArgument, IncompatibleVersion
 */
function assertSameFlow(
  uuid: string,
  ran: { readonly flow?: string | undefined; readonly version?: string | undefined },
  asked: AnyFlow | undefined,
): void {
  if (!asked || ran.flow === undefined) return
  if (ran.flow !== asked.name)
    throw new InvalidArgument(
      `result: job ${uuid} is of flow ${ran.flow}, got flow ${asked.name}; pass the flow of the job`,
    )
  if (ran.version !== undefined && ran.version !== asked.version)
    throw new IncompatibleVersion(
      `job ${uuid} is of version ${ran.version} of flow ${ran.flow}, and the results of version ${asked.version} were asked for; pass that version of the flow, or omit flow and check the results`,
    )
}

/** Returns the results that the board has kept; undefined if it has none. @throws ResultNotKept */
function toResults(
  uuid: string,
  asked: { known: KnownEnd; now: number; book: string; persistence: ResultLogbooks | undefined },
): Readonly<Record<string, unknown>> | undefined {
  const { known, now, book, persistence } = asked
  const kept = keptResultsOf(known, { now })
  if (!kept) return undefined
  if ('notKept' in kept) {
    if (persistence) return undefined
    throw new ResultNotKept(
      `job ${uuid} is done, and its results were not kept: ${kept.notKept}; pass persistence and flow to read its logbook`,
    )
  }
  // Logbooks whose codec is required refuse results that did not go through it.
  if (persistence?.unsealResults) return persistence.unsealResults(kept, { book, flow: uuid })
  if ('values' in kept) return kept.values
  throw new ResultNotKept(
    `job ${uuid} is done, and its results are sealed by ${kept.sealed.by.join(', ')}: pass persistence, opened with that codec`,
  )
}

/** Returns what the logbook knows of a job; undefined without logbooks, and where they do not know it. */
export async function readLoggedFlow({
  uuid,
  book,
  persistence,
}: {
  readonly uuid: string
  readonly book: string
  readonly persistence: ResultLogbooks | undefined
}): Promise<LoggedFlow | undefined> {
  try {
    const found = await persistence?.getBook(book)
    const flow = found?.flows.find((flow) => flow.uuid === uuid)
    return flow && { ...flow, ...defined({ meta: found?.meta }) }
  } catch (error) {
    if (error instanceof NotFound) return undefined
    throw error
  }
}

interface Logged {
  readonly logged: LoggedFlow | undefined
  readonly known: KnownEnd | undefined
  readonly flow: AnyFlow | undefined
  readonly uri: string
}

/** Returns what the flow has provided, from the records of its atoms. */
export function collectLogged({ atoms }: LoggedFlow, flow: AnyFlow): Record<string, unknown> {
  const byName = new Map(atoms.map((atom) => [atom.name, atom]))
  return collectProvided(compile(flow), (name) => byName.get(name))
}

/** Returns the results that the logbook has. @throws JobFailed, ResultNotKept, NotFound */
function readLogged(uuid: string, { logged, known, flow, uri }: Logged): Record<string, unknown> {
  const isReverted = logged?.state === 'REVERTED' || logged?.state === 'FAILURE'
  if (known?.outcome === 'TRASHED' || (isReverted && logged)) {
    const failures = (logged?.atoms ?? []).flatMap(({ failure, revertFailure }) =>
      [failure, revertFailure].filter((each) => each !== undefined),
    )
    const reason = known?.reason ?? failures[0]?.message ?? 'its flow was reverted'
    throw new JobFailed(`job ${uuid} failed: ${reason}`, { uuid, reason, failures, cancelled: isCancellation(reason) })
  }
  if (logged?.state === 'SUCCESS' && flow) {
    assertSameFlow(uuid, { flow: logged.name, version: logged.version }, flow)
    return collectLogged(logged, flow)
  }
  if (!known && logged && !isFinished(logged.state))
    throw new NotFound(`job ${uuid} is not on ${uri} nor in its trash; ${toLogbookText(logged, uri)}`)
  if (!known && !logged)
    throw new NotFound(`job ${uuid} is neither on the board (${uri}) nor in its history; check the uuid`)
  throw new ResultNotKept(
    `job ${uuid} is done, and its results were not kept: set keepResults on its flow, or pass persistence and flow to read its logbook`,
  )
}
