/**
 * What every board must do, whatever keeps it. Each backend's test calls {@link boardContract} with how to get at one.
 * The parts are in `board/`, by what they are about.
 */
import { afterEach, beforeEach, describe } from 'vitest'
import type { Job, JobBoard, OpenBoardOptions } from '../../src/board/index.ts'
import { batchChangesContract } from './board/batch-changes.ts'
import { batchesContract } from './board/batches.ts'
import { cancellingContract } from './board/cancelling.ts'
import { type BoardCapabilities, capabilitiesContract } from './board/capabilities.ts'
import { claimingContract } from './board/claiming.ts'
import { delaysContract } from './board/delays.ts'
import { dependenciesContract } from './board/dependencies.ts'
import { elsewhereContract } from './board/elsewhere.ts'
import { endsContract } from './board/ends.ts'
import { entitiesContract } from './board/entities.ts'
import { eventsContract } from './board/events.ts'
import { expiryContract } from './board/expiry.ts'
import { flowSettingsContract, noFlowSettingsContract } from './board/flow-settings.ts'
import { historyContract } from './board/history.ts'
import { idlePollingContract } from './board/idle-polling.ts'
import { jobLimitsContract, noLimitsContract } from './board/job-limits.ts'
import { keyReplacingContract } from './board/key-replacing.ts'
import { keyWindowsContract } from './board/key-windows.ts'
import { keysContract } from './board/keys.ts'
import { levelsContract } from './board/levels.ts'
import { limitTokensContract } from './board/limit-tokens.ts'
import { limitsContract } from './board/limits.ts'
import { losingContract } from './board/losing.ts'
import { manyContract } from './board/many.ts'
import { misuseContract } from './board/misuse.ts'
import { onceContract } from './board/once.ts'
import { ownJobsContract } from './board/own-jobs.ts'
import { pausingContract } from './board/pausing.ts'
import { poisonContract } from './board/poison.ts'
import { postingContract } from './board/posting.ts'
import { queuesContract } from './board/queues.ts'
import { recordsContract } from './board/records.ts'
import { releasingContract } from './board/releasing.ts'
import { resourcesContract } from './board/resources.ts'
import { resultsContract } from './board/results.ts'
import { schedulesContract, schedulesWithoutKeysContract } from './board/schedules.ts'
import { settlingContract } from './board/settling.ts'
import { tracingContract } from './board/tracing.ts'
import { trashContract } from './board/trash.ts'
import { viewsContract } from './board/views.ts'
import { waitingContract } from './board/waiting.ts'

export interface BoardBackend {
  readonly name: string
  /** What it cannot do is refused, and that is what is tested then. */
  readonly capabilities: BoardCapabilities
  /** Its postings hold nothing that JSON does not: no dates, no bytes. */
  readonly jsonOnly?: boolean
  /** Changes cost nothing, or are always received: a caller without work stays in the view of a busy board. */
  readonly neverPolls?: boolean
  /** A view reads the postings of all queues, also of queues without a caller. */
  readonly readsAllQueues?: boolean
  /** A transaction cannot check that a job has no cancel request. */
  readonly overlooksCancelRequests?: boolean
  /** The clock of its boards is that of the process. */
  readonly hasProcessClock?: boolean
  /** An empty place for boards. */
  place(): Promise<BoardPlace>
}

export interface BoardPlace extends AsyncDisposable {
  /** The URI of the board, with a password if it needs one. */
  readonly uri: string
  /** Another board object on the same place: what another process would have. It is kept viewing. */
  open(options?: OpenBoardOptions): Promise<JobBoard>
  /** Opens a board as users do: it is viewed only while something needs it. */
  openUnviewed(options?: OpenBoardOptions): Promise<JobBoard>
  /** Ends the board's session behind its back, as its server would that has not heard of it for long. */
  expire(board: JobBoard): Promise<void>
  /** Puts bytes where a posting would be; resolves to its id. */
  putRaw(bytes: Uint8Array): Promise<string>
  /** Takes the posting away, and nothing else of what belongs to the job, as somebody might by hand. */
  removeRaw(job: Job): Promise<void>
  /** Removes the whole board, with all numbers that it has counted. No board object is open on it. */
  beginAnew(): Promise<void>
}

/** The place of one test. Boards that are opened through it are closed at the end. */
export type Place = Omit<BoardPlace, keyof AsyncDisposable>

/** The parts that a window can change: what a view that holds three jobs must read on for. */
export const WINDOW_PARTS: readonly PartName[] = [
  'posting and looking',
  'claiming',
  'queues',
  'what is known of jobs that run elsewhere',
  'what a job waits for',
  'resources',
  'delays and deadlines',
  'expiry',
  'cancelling',
  'releasing',
  'levels',
  'views that are opened again',
  'jobs after jobs',
  'keys that replace',
]

/** The parts that sharing a board with TaskFlow can change: records are JSON, locks have a revision, trash is its own. */
export const SHARED_PARTS: readonly PartName[] = [
  'posting and looking',
  'postings that do harm',
  'claiming',
  'settling',
  'losing a claim',
  'the trash',
  'trace contexts',
  'cancelling',
  'capabilities',
  'levels',
  'views that are opened again',
  'records',
  'limits of jobs',
  'settings of flows',
  'schedules',
]

type PartName =
  | 'posting and looking'
  | 'claiming'
  | 'queues'
  | 'settling'
  | 'attempts and their limits'
  | 'losing a claim'
  | 'events'
  | 'waiting and closing'
  | 'entities'
  | 'misuse'
  | 'postings that do harm'
  | 'pause and resume'
  | 'the trash'
  | 'trace contexts'
  | 'what a job waits for'
  | 'what is known of jobs that run elsewhere'
  | 'keys'
  | 'windows of keys'
  | 'keys that replace'
  | 'resources'
  | 'delays and deadlines'
  | 'expiry'
  | 'cancelling'
  | 'releasing'
  | 'a job that its poster claims'
  | 'capabilities'
  | 'levels'
  | 'views that are opened again'
  | 'waiting on a busy board'
  | 'records'
  | 'limits of jobs'
  | 'tokens of limits'
  | 'settings of flows'
  | 'schedules'
  | 'many posts'
  | 'work that is done once'
  | 'jobs after jobs'
  | 'history'
  | 'batches'
  | 'changes of batches'
  | 'results'

/** How boards are opened: kept viewing, or as users open them, so that each is viewed only while something needs it. */
type Opened = 'viewing' | 'as used'

/**
 * Runs the contract on a backend.
 *
 * @param options.variant of a backend that passes the whole contract elsewhere, the parts that can differ here. `npm run
 * test:long` runs all parts all the same
 * @param options.opened in which ways boards are opened; `npm run test:long` tries both all the same
 */
export function boardContract(
  backend: BoardBackend,
  {
    variant,
    opened = ['viewing'],
  }: { readonly variant?: readonly PartName[]; readonly opened?: readonly Opened[] } = {},
): void {
  const isLong = process.env['JOBBOARD_LONG'] === '1'
  const parts = isLong ? undefined : variant
  for (const how of isLong ? (['viewing', 'as used'] as const) : opened)
    describe(`board contract on ${backend.name}, boards ${how}`, () => contractOf(backend, { parts, opened: how }))
}

function contractOf(
  backend: BoardBackend,
  { parts, opened }: { readonly parts: readonly PartName[] | undefined; readonly opened: Opened },
): void {
  const part = (name: PartName, tests: () => void) => {
    if (!parts || parts.includes(name)) describe(name, tests)
  }
  let place: BoardPlace | undefined
  const boards: JobBoard[] = []

  beforeEach(async () => {
    place = await backend.place()
  })

  afterEach(async () => {
    await Promise.all(boards.splice(0).map((board) => board.close()))
    await place?.[Symbol.asyncDispose]()
  })

  const there = (): BoardPlace => {
    if (!place) throw new Error('there is a place only within a test')
    return place
  }
  const remember = async (opening: Promise<JobBoard>) => {
    const board = await opening
    boards.push(board)
    return board
  }
  const use: Place = {
    get uri() {
      return there().uri
    },
    open: (options) => remember(opened === 'viewing' ? there().open(options) : there().openUnviewed(options)),
    openUnviewed: (options) => remember(there().openUnviewed(options)),
    expire: (board) => there().expire(board),
    putRaw: (bytes) => there().putRaw(bytes),
    removeRaw: (job) => there().removeRaw(job),
    beginAnew: () => there().beginAnew(),
  }
  // What it cannot do is not left out: that it is refused is tested with the capabilities.
  const { keys, resources, delays, expiry, limits, dependencies, history, batches, release } = backend.capabilities
  part('posting and looking', () => postingContract(use, backend))
  part('claiming', () => claimingContract(use))
  part('queues', () => queuesContract(use, backend))
  part('settling', () => settlingContract(use))
  part('attempts and their limits', () => limitsContract(use))
  part('losing a claim', () => losingContract(use))
  part('what is known of jobs that run elsewhere', () => elsewhereContract(use))
  part('events', () => eventsContract(use))
  part('waiting and closing', () => endsContract(use))
  part('entities', () => entitiesContract(use))
  part('misuse', () => misuseContract(use))
  part('pause and resume', () => pausingContract(use))
  part('the trash', () => trashContract(use, backend.capabilities))
  part('trace contexts', () => tracingContract(use))
  part('what a job waits for', () => waitingContract(use, backend.capabilities))
  if (keys) part('keys', () => keysContract(use))
  if (keys) part('windows of keys', () => keyWindowsContract(use, backend))
  if (keys) part('keys that replace', () => keyReplacingContract(use, backend))
  if (resources) part('resources', () => resourcesContract(use))
  if (delays) part('delays and deadlines', () => delaysContract(use, backend.capabilities))
  if (expiry) part('expiry', () => expiryContract(use, backend))
  part('cancelling', () => cancellingContract(use, backend.capabilities))
  if (release) part('releasing', () => releasingContract(use, backend.capabilities))
  part('a job that its poster claims', () => ownJobsContract(use, backend.capabilities))
  part('postings that do harm', () => poisonContract(use, backend))
  part('capabilities', () => capabilitiesContract(use, backend.capabilities))
  part('levels', () => levelsContract(use))
  part('views that are opened again', () => viewsContract(use))
  part('records', () => recordsContract(use, { keys }))
  part('limits of jobs', () => (limits ? jobLimitsContract(use) : noLimitsContract(use)))
  if (limits) part('tokens of limits', () => limitTokensContract(use))
  part('settings of flows', () => (limits ? flowSettingsContract(use) : noFlowSettingsContract(use)))
  part('schedules', () => (keys ? schedulesContract(use) : schedulesWithoutKeysContract(use)))
  part('work that is done once', () => onceContract(use))
  if (keys) part('many posts', () => manyContract(use))
  if (dependencies) part('jobs after jobs', () => dependenciesContract(use))
  if (batches) part('batches', () => batchesContract(use))
  if (batches) part('changes of batches', () => batchChangesContract(use))
  if (history) part('history', () => historyContract(use))
  if (history) part('results', () => resultsContract(use, backend.capabilities))
  if (!backend.neverPolls) part('waiting on a busy board', () => idlePollingContract(use, backend.capabilities))
}
