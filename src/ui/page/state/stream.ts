/** The stream of a board's changes. One tab has it, for all tabs of the browser. */
import type { WireChange } from '../../wire/live.ts'
import { endpoint } from './api.ts'

export type StreamState = 'open' | 'away'

/** Messages between the tabs of a browser. */
export type TabMessage =
  /** The topics that have changed. */
  | { readonly kind: 'change'; readonly topics: readonly string[] }
  /** Changes may have been missed: everything must be read again. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'state'; readonly state: StreamState }
  /** The jobs that a tab shows. */
  | { readonly kind: 'watch'; readonly tab: string; readonly uuids: readonly string[] }
  /** Asks the others which jobs they show. */
  | { readonly kind: 'ask' }

const REPORT_MS = 10_000
/** The server sends `alive` every 15 s. A stream without it is lost, even if the browser shows it as open: networks drop connections silently. */
const ALIVE_TIMEOUT_MS = 40_000
const RETRY_MS = 3_000
/** How long to wait for the jobs of other tabs, so that one request names all of them. */
const GATHER_MS = 100
const MAX_JOBS = 50

/** Opens the stream, opens it again when it ends, and reports its messages. */
export class StreamHolder {
  readonly #board: string
  readonly #report: (message: TabMessage) => void
  readonly #byTab = new Map<string, readonly string[]>()
  #source: EventSource | undefined
  /** The jobs that the open stream was asked for. */
  #named: ReadonlySet<string> = new Set()
  /** Not known before the first stream is open or has failed: until then nothing is reported, and tabs that wait too long read by themselves. */
  #state: StreamState | undefined
  /** The id of the newest message: a stream that names other jobs continues after it, so that no change is missed in between. */
  #lastId: string | undefined
  /** The time of the newest message, or at which the stream began to open. */
  #aliveAt = 0
  #opening: ReturnType<typeof setTimeout> | undefined
  readonly #reporting: ReturnType<typeof setInterval>

  constructor(board: string, report: (message: TabMessage) => void) {
    this.#board = board
    this.#report = report
    this.#reporting = setInterval(() => this.#check(), REPORT_MS)
    this.#openIn(0)
  }

  /** Notes the jobs that a tab shows, and reports the state, which a new tab does not know. The stream is reopened only if it does not name all jobs. */
  watch(tab: string, uuids: readonly string[]): void {
    this.#reportState()
    if (uuids.length === 0) this.#byTab.delete(tab)
    else this.#byTab.set(tab, uuids)
    if (uuids.some((uuid) => !this.#named.has(uuid))) this.#openIn(GATHER_MS)
  }

  close(): void {
    clearInterval(this.#reporting)
    clearTimeout(this.#opening)
    this.#source?.close()
  }

  #check(): void {
    if (this.#source === undefined) return
    // Also while it is being opened: after a sleep, the browser may open it over a kept connection whose other end is gone.
    if (Date.now() - this.#aliveAt > ALIVE_TIMEOUT_MS) {
      this.#set('away')
      this.#openIn(0)
    } else this.#reportState()
  }

  #openIn(delay: number): void {
    clearTimeout(this.#opening)
    this.#opening = setTimeout(() => this.#open(), delay)
  }

  #open(): void {
    this.#source?.close()
    const jobs = [...new Set([...this.#byTab.values()].flat())].slice(-MAX_JOBS)
    this.#named = new Set(jobs)
    const query = new URLSearchParams({ jobs: jobs.join(','), ...(this.#lastId && { since: this.#lastId }) })
    const source = new EventSource(endpoint(`boards/${encodeURIComponent(this.#board)}/events?${query}`))
    this.#source = source
    this.#aliveAt = Date.now()
    const noteReceived = (): void => {
      this.#aliveAt = Date.now()
    }
    source.onopen = () => {
      noteReceived()
      this.#set('open')
    }
    source.onerror = () => {
      this.#set('away')
      // A refused request ends the source; a lost connection it opens again by itself.
      if (source.readyState === EventSource.CLOSED) this.#openIn(RETRY_MS)
    }
    source.onmessage = ({ data, lastEventId }: MessageEvent<string>): void => {
      noteReceived()
      const { topics } = JSON.parse(data) as WireChange
      // What was read before the first message may have changed before the stream was open.
      if (this.#lastId === undefined) this.#report({ kind: 'reset' })
      else if (topics.length > 0) this.#report({ kind: 'change', topics })
      this.#lastId = lastEventId
    }
    source.addEventListener('alive', noteReceived)
    source.addEventListener('reset', ({ lastEventId }) => {
      noteReceived()
      this.#lastId = lastEventId
      this.#report({ kind: 'reset' })
    })
  }

  #set(state: StreamState): void {
    this.#state = state
    this.#reportState()
  }

  #reportState(): void {
    if (this.#state !== undefined) this.#report({ kind: 'state', state: this.#state })
  }
}
