/**
 * Receives the changes of a board. All tabs of a browser share one stream for each board: browsers open at most six connections to a server, and
 * a stream occupies one permanently. The tab that holds a lock of the browser has the stream, and forwards its messages to the others. Without
 * locks, or while the stream is disconnected, the page is read again every few seconds. A hidden tab has no stream and reads nothing.
 */
import { effect, signal } from '@preact/signals'
import { takeUnanswered } from './api.ts'
import { BASE_PATH } from './base.ts'
import { emitChange } from './changes.ts'
import { place } from './router.ts'
import { StreamHolder, type StreamState, type TabMessage } from './stream.ts'

/** `live`: the stream is open. `polling`: it is disconnected, and the page is read every 5 s. `paused`: the tab is hidden. */
export type LiveState = 'connecting' | 'live' | 'polling' | 'paused'

const POLL_MS = 5_000
/** A tab that has the stream reports every 10 s. */
const SILENCE_MS = 25_000
/** A timer that fires later than this means that the machine has slept. */
const SLEEP_MS = 20_000

export const live = signal<LiveState>('connecting')

/** The jobs whose changes this tab asks for, with the number of its parts that show each. */
const watched = new Map<string, number>()
let follower: Follower | undefined

/** Asks for the changes of a job and of its logbook. Returns a function that ends that. */
export function watchJob(uuid: string): () => void {
  watched.set(uuid, (watched.get(uuid) ?? 0) + 1)
  follower?.announce()
  return () => {
    const rest = (watched.get(uuid) ?? 1) - 1
    if (rest > 0) watched.set(uuid, rest)
    else watched.delete(uuid)
    follower?.announce()
  }
}

/** Receives the changes of the board in the address until the page is left. */
export function startLive(): void {
  effect(() => {
    const { board } = place.value
    follower?.stop()
    follower = board === undefined ? undefined : new Follower(board)
    if (!document.hidden) follower?.start()
  })
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) follower?.pause()
    else follower?.resume()
  })
  // A hidden tab starts again when it is shown.
  const restart = (): void => {
    if (!document.hidden) follower?.restart()
  }
  // The page comes from the browser's cache, or the network is back.
  addEventListener('pageshow', (event) => event.persisted && restart())
  addEventListener('online', restart)
  let last = Date.now()
  setInterval(() => {
    const slept = Date.now() - last > SLEEP_MS
    last = Date.now()
    if (slept) restart()
  }, POLL_MS)
}

/** Receives the changes of one board in this tab, from its own stream or from the tab that has it. */
class Follower {
  readonly #board: string
  readonly #tab = crypto.getRandomValues(new Uint32Array(2)).join('-')
  readonly #channel: BroadcastChannel
  #holder: StreamHolder | undefined
  #stopping: AbortController | undefined
  #poll: ReturnType<typeof setInterval> | undefined
  #receivedAt = 0

  constructor(board: string) {
    this.#board = board
    this.#channel = new BroadcastChannel(`jobboard ${BASE_PATH} ${board}`)
    this.#channel.onmessage = ({ data }: MessageEvent<TabMessage>) => this.#receive(data)
  }

  start(): void {
    this.#stopping = new AbortController()
    this.#receivedAt = Date.now()
    live.value = 'connecting'
    this.#poll = setInterval(() => this.#check(), POLL_MS)
    this.announce()
    // Only pages from a trusted origin have locks: over plain HTTP from another machine there are none.
    if ('locks' in navigator) void this.#waitForLock(this.#stopping.signal)
    else live.value = 'polling'
  }

  pause(): void {
    this.#end()
    live.value = 'paused'
  }

  resume(): void {
    if (this.#stopping !== undefined) return
    this.start()
    emitChange('all')
  }

  restart(): void {
    this.#end()
    this.start()
    emitChange('all')
  }

  stop(): void {
    this.#end()
    this.#channel.close()
  }

  /** Sends the jobs that this tab shows to the tab that has the stream. */
  announce(): void {
    const uuids = [...watched.keys()]
    this.#holder?.watch(this.#tab, uuids)
    this.#post({ kind: 'watch', tab: this.#tab, uuids })
  }

  #end(): void {
    clearInterval(this.#poll)
    this.#stopping?.abort()
    this.#stopping = undefined
    this.#post({ kind: 'watch', tab: this.#tab, uuids: [] })
  }

  async #waitForLock(signal: AbortSignal): Promise<void> {
    const name = `jobboard ${BASE_PATH} ${this.#board}`
    await navigator.locks.request(name, { signal }, () => this.#hold(signal)).catch(() => undefined)
  }

  /** Has the stream until the tab is hidden or left; then the browser gives the lock to the next tab. */
  #hold(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve()
      const holder = new StreamHolder(this.#board, (message) => {
        this.#post(message)
        this.#receive(message)
      })
      this.#holder = holder
      this.#post({ kind: 'ask' })
      holder.watch(this.#tab, [...watched.keys()])
      signal.addEventListener('abort', () => {
        holder.close()
        this.#holder = undefined
        resolve()
      })
    })
  }

  #receive(message: TabMessage): void {
    if (this.#stopping === undefined) return
    if (message.kind === 'watch') this.#holder?.watch(message.tab, message.uuids)
    else if (message.kind === 'ask') this.announce()
    else {
      this.#receivedAt = Date.now()
      if (message.kind === 'state') this.#setState(message.state)
      else emitChange(message.kind === 'reset' ? 'all' : new Set(message.topics))
    }
  }

  #setState(state: StreamState): void {
    const wasAway = live.value === 'polling'
    live.value = state === 'open' ? 'live' : 'polling'
    // Between two streams there may have been changes.
    if (wasAway && state === 'open') emitChange('all')
  }

  #check(): void {
    if (live.value !== 'polling' && Date.now() - this.#receivedAt > SILENCE_MS) live.value = 'polling'
    if (takeUnanswered() || live.value === 'polling') emitChange('all')
  }

  #post(message: TabMessage): void {
    try {
      this.#channel.postMessage(message)
    } catch {
      // The channel is closed: the tab is being left.
    }
  }
}
