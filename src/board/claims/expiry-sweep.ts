/**
 * Finds jobs that have expired on a long board, where the view contains only a part of the jobs.
 *
 * The processes that claim read the board page by page, all of them together: a record of the board has the place at which the next page
 * begins, and the time from which it may be read. So the load does not grow with the number of processes, and a restart loses no progress. A
 * board that is in the view as a whole is not read.
 *
 * | after | the next page is read |
 * |---|---|
 * | a page | 10 s later |
 * | the last page, if a job of the board can expire | 10 s later, from the head |
 * | the last page, if none can | 10 min later, from the head |
 *
 * A page has at most 500 jobs, and about 4 MiB. So a job of a board with n jobs is found n / 500 × 10 s after it has expired at the
 * latest, and 10 min later if it is the first that can expire; later only if postings are larger than 8 KiB.
 */
import { RecurringError } from '../../core/async/recurring-error.ts'
import { InvalidPosting, isError, NotConnected, OutcomeUnknown } from '../../core/errors.ts'
import { startTimer } from '../../core/time.ts'
import type { Backend, BackendSections, JobSummary, StoredJob } from '../contract/index.ts'
import { type ClaimOrderKey, toPriority } from '../model/claim-order.ts'
import { canExpire } from '../model/expiry.ts'
import type { BoardRecords } from '../records/board-records.ts'
import type { BoardRecord, RecordKind, RecordStore } from '../records/record-store.ts'
import { ReadSize } from '../view/content-reader.ts'
import type { LiveView } from '../view/live-view.ts'

const PAGE = { jobs: 500, bytes: 4 * 1_024 * 1_024 } as const
const PERIOD_MS = 10_000
/** The pause after a pass in which no job was found that can expire. */
const IDLE_PERIOD_MS = 600_000

/** The progress of the sweep of a board, as its record has it. Times are in milliseconds on the board's clock. */
export interface SweepProgress {
  /** The place of the last job that was read; absent at the beginning of a pass. */
  readonly after?: { readonly id: string; readonly priority: string; readonly order: string }
  /** The time from which the next page may be read. */
  readonly nextAt: number
  /** Whether a job that can expire was found in this pass. */
  readonly hasFound: boolean
}

const SWEEPS: RecordKind<SweepProgress> = { name: 'sweep', format: 1, parse: parseProgress }
const RECORD_ID = 'expiry'

export interface ExpirySweepOptions {
  readonly backend: Pick<Backend, 'sections' | 'jobs' | 'clock'>
  readonly view: Pick<LiveView, 'isOpen' | 'extent'>
  readonly records: Pick<BoardRecords, 'of'>
  readonly signal: AbortSignal
  /** Trashes the expired ones among the jobs. */
  readonly expire: (jobs: readonly (StoredJob & { readonly cancelled: boolean })[]) => Promise<void>
  readonly onError: (error: Error) => void
}

export class ExpirySweep {
  readonly #options: ExpirySweepOptions
  readonly #store: RecordStore<SweepProgress>
  readonly #readSize = new ReadSize()
  #timer: NodeJS.Timeout | undefined
  readonly #recurring = new RecurringError()

  constructor(options: ExpirySweepOptions) {
    this.#options = options
    this.#store = options.records.of(SWEEPS)
  }

  /** Begins to read pages until the board is closed, where the view may contain only a part of it. */
  start(): void {
    const { backend, signal } = this.#options
    if (!backend.sections || signal.aborted) return
    signal.addEventListener('abort', () => clearTimeout(this.#timer), { once: true })
    this.#arm()
  }

  /** Sets the timer, with a random part: of processes that started together, one reads the page. */
  #arm(): void {
    this.#timer = startTimer(() => void this.#turn(), PERIOD_MS * (0.5 + Math.random())).unref()
  }

  async #turn(): Promise<void> {
    const { signal, onError } = this.#options
    try {
      await this.readPage()
      this.#recurring.clear()
    } catch (error) {
      const isAway = error instanceof NotConnected || error instanceof OutcomeUnknown
      if (!signal.aborted && !isAway && isError(error) && this.#recurring.isNew(error)) onError(error)
    }
    if (!signal.aborted) this.#arm()
  }

  /**
   * Reads the next page if its time has come, and trashes what has expired.
   *
   * @returns whether a page was read
   * @throws NotConnected, OutcomeUnknown
   */
  async readPage(): Promise<boolean> {
    const { backend, view, expire } = this.#options
    const { sections } = backend
    if (!sections || (view.isOpen && view.extent.isWholeBoard)) return false
    const found = await this.#store.get(RECORD_ID)
    // A newer release has another format: it sweeps the board, too.
    if (found && 'error' in found && !(found.error instanceof InvalidPosting)) return false
    const known = found && 'value' in found ? found.value : undefined
    await backend.clock.read()
    const now = backend.clock.now()
    // A time that is far ahead was written before the server's clock was set back.
    if (known && now < known.nextAt && known.nextAt <= now + 2 * IDLE_PERIOD_MS) return false
    const page = await this.#read(sections, known?.after && toPlace(known.after))
    const hasFound = page.jobs.length > 0 || (known?.after !== undefined && known.hasFound)
    await this.#write({ found, now, page, hasFound })
    await expire(page.jobs)
    return true
  }

  /** Writes the progress. If another process has written it at the same time, both have read the same page, which does no harm. */
  async #write({
    found,
    now,
    page: { last, isEnd },
    hasFound,
  }: {
    readonly found: Pick<BoardRecord<SweepProgress>, 'revision'> | undefined
    readonly now: number
    readonly page: Page
    readonly hasFound: boolean
  }): Promise<void> {
    const nextAt = now + (isEnd && !hasFound ? IDLE_PERIOD_MS : PERIOD_MS)
    const after = isEnd || !last ? {} : { after: { id: last.id, priority: last.priority, order: String(last.order) } }
    const value = { ...after, nextAt, hasFound: isEnd ? false : hasFound }
    await this.#store.write([{ id: RECORD_ID, revision: found?.revision, value }])
  }

  async #read(sections: BackendSections, after: ClaimOrderKey | undefined): Promise<Page> {
    const { backend, signal } = this.#options
    const { jobs: places, end } = await sections.range({ after, limit: PAGE.jobs, due: false })
    const jobs: (StoredJob & { readonly cancelled: boolean })[] = []
    let [at, bytes] = [0, 0]
    while (at < places.length && bytes < PAGE.bytes) {
      signal.throwIfAborted()
      const part = places.slice(at, at + this.#readSize.postings)
      const unclaimed = part.filter(({ claimed }) => !claimed)
      const read = await backend.jobs.read(unclaimed.map(({ id }) => id))
      this.#readSize.adapt(read)
      for (const [index, job] of read.entries()) {
        bytes += job?.bytes ?? 0
        if (job && 'posting' in job && canExpire(job.posting))
          jobs.push({ ...job, cancelled: unclaimed[index]?.cancelled === true })
      }
      at += part.length
    }
    return { jobs, last: places[at - 1], isEnd: end && at >= places.length }
  }
}

/** A page: its jobs that can expire, and its last job. */
interface Page {
  readonly jobs: readonly (StoredJob & { readonly cancelled: boolean })[]
  readonly last: JobSummary | undefined
  readonly isEnd: boolean
}

function toPlace({ id, priority, order }: SweepProgress['after'] & object): ClaimOrderKey {
  return { id, priority: toPriority(priority), order: BigInt(order) }
}

/** Checks what another release, or somebody by hand, may have written. @throws InvalidPosting */
function parseProgress(value: unknown): SweepProgress {
  const { after, nextAt, hasFound } = Object(value)
  const { id, priority, order } = Object(after)
  const isPlace = typeof id === 'string' && typeof priority === 'string' && /^-?\d{1,30}$/.test(order)
  if (typeof nextAt !== 'number' || !(after === undefined || isPlace))
    throw new InvalidPosting('the record of the sweep is incomplete: it begins again')
  return { nextAt, hasFound: hasFound === true, ...(isPlace ? { after: { id, priority, order } } : {}) }
}
