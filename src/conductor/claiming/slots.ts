/**
 * The slots of a conductor, which all its boards share, and the order in which its boards take them. Each board has a lane:
 *
 * | state of a lane | means |
 * |---|---|
 * | `out` | the board is not asked: it is being opened, the conductor is paused, or the board has failed and pauses |
 * | `ready` | the board may have jobs, and waits for its turn |
 * | `asking` | the board is asked for as many jobs as slots are reserved for it |
 * | `idle` | the board was asked and had nothing; it becomes `ready` when a job can be claimed there |
 *
 * In order, a board is asked only while all boards before it are idle or out. By weight, the board is asked that has claimed the fewest jobs
 * for its weight; what a board did not claim while it had nothing is not made up for later.
 *
 * A board that is away reserves no slots and blocks no other. A claim that such a board has granted nevertheless takes a free slot, or is
 * given back.
 */
import { abortAfter, Condition, followSignals } from '../../core/async/abort.ts'
import { Timeout } from '../../core/errors.ts'
import { monotonic } from '../../core/time.ts'

/** The time that all slots have to be taken before idle boards are not watched any more; they are asked again when a slot is free. */
const FULL_LINGER_MS = 10_000

/** The share of one board in the slots. */
export interface Lane {
  readonly weight: number
  /** Notified when an idle board is to be asked again, although nothing has changed there. */
  readonly wake: Condition
  state: 'out' | 'ready' | 'asking' | 'idle'
  /** The number of slots that are reserved for the claims under way. */
  reserved: number
  /** The jobs that it has claimed, divided by its weight. */
  pass: number
  /** The connection to the board: `away` for a while, or `lost` with the session. */
  connection: 'there' | 'away' | 'lost'
  /** Whether nothing was left to claim when the board was asked last, after its queue was refreshed. */
  isExhausted: boolean
}

export interface SlotsOptions {
  readonly count: number
  readonly burst: boolean
  readonly maxJobs?: number | undefined
  /** The time in milliseconds. */
  readonly maxIdleTime?: number | undefined
  /** Whether boards share the slots by weight; otherwise boards that were added earlier come first. */
  readonly isWeighted: boolean
}

export class Slots {
  /** Notified when a slot, a lane, or anything else that a claim waits for has changed. */
  readonly changed = new Condition()
  readonly #options: SlotsOptions
  readonly #lanes: Lane[] = []
  #count: number
  #running = 0
  #claimed = 0
  #isPaused = false
  #idleSince = monotonic()
  /** The pass at which the last job was claimed: a lane that becomes ready begins with it at least. */
  #pass = 0
  #fullTimer: NodeJS.Timeout | undefined

  constructor(options: SlotsOptions) {
    this.#options = options
    this.#count = options.count
  }

  /** Adds the lane of a board; its board comes after the boards that were added before. */
  addLane({ weight = 1 }: { readonly weight?: number | undefined } = {}): Lane {
    const lane: Lane = {
      ...{ weight, wake: new Condition(), state: 'out', reserved: 0, pass: 0, connection: 'lost' },
      isExhausted: false,
    }
    this.#lanes.push(lane)
    return lane
  }

  get count(): number {
    return this.#count
  }

  /** Changes the number of slots. Running jobs continue: if they are more than that, none is claimed until enough have ended. */
  setCount(count: number): void {
    this.#count = count
    this.#watchFull()
    this.changed.notify()
  }

  /** The number of slots that are taken by runs. */
  get running(): number {
    return this.#running
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** Returns whether the lane shares the slots with no other. */
  isSole(lane: Lane): boolean {
    return this.#lanes.length === 1 && this.#lanes[0] === lane
  }

  setPaused({ paused }: { readonly paused: boolean }): void {
    this.#isPaused = paused
    this.changed.notify()
  }

  // --- Turns ------------------------------------------------------------------------------------------------------

  /**
   * Waits for the board's turn, and reserves slots for it.
   *
   * @param options.canAsk returns whether the board can be asked now; {@link changed} is notified when that has changed
   * @returns the number of slots; 0 when the board cannot be asked any more
   * @throws the signal's reason
   */
  async turn(
    lane: Lane,
    { canAsk, signal }: { readonly canAsk: () => boolean; readonly signal: AbortSignal },
  ): Promise<number> {
    if (lane.state === 'idle' || lane.state === 'out') lane.pass = Math.max(lane.pass, this.#pass)
    lane.isExhausted = false
    this.#setState(lane, 'ready')
    while (canAsk()) {
      signal.throwIfAborted()
      const granted = this.#grant(lane)
      if (granted > 0) return granted
      await this.changed.wait({ signal })
    }
    this.#setState(lane, 'out')
    return 0
  }

  /** Ends the turn: the slots that the board did not use are free again. */
  endTurn(lane: Lane): void {
    this.#withdraw(lane)
    this.#setState(lane, 'ready')
  }

  /** Notes that the board has nothing to claim now. */
  setIdle(lane: Lane): void {
    this.#withdraw(lane)
    this.#setState(lane, 'idle')
  }

  /** Notes that nothing is left to claim: with `burst`, the conductor ends when that is so on all boards. */
  noteExhausted(lane: Lane): void {
    lane.isExhausted = true
    this.changed.notify()
  }

  /** Notes that the board is not asked until its next turn. */
  setOut(lane: Lane): void {
    this.#withdraw(lane)
    this.#setState(lane, 'out')
  }

  setConnection(lane: Lane, connection: Lane['connection']): void {
    if (lane.connection === connection) return
    lane.connection = connection
    if (connection !== 'there') this.#withdraw(lane)
    this.changed.notify()
  }

  // --- Runs -------------------------------------------------------------------------------------------------------

  /** Takes a slot for a claim. Returns false if the claim must be given back, because its slot was given to another board. */
  begin(lane: Lane): boolean {
    if (lane.reserved > 0) lane.reserved -= 1
    else if (this.#free < 1) return false
    else lane.pass += 1 / lane.weight
    this.#running += 1
    this.#claimed += 1
    this.#watchFull()
    return true
  }

  /** Frees the slot of a job that has ended. */
  noteEnded(): void {
    this.#running -= 1
    if (this.#running === 0) {
      this.#idleSince = monotonic()
      // The end of a job may have made others claimable that were not when the boards were asked.
      if (this.#options.burst) this.#wakeExhausted()
    }
    this.#watchFull()
    this.changed.notify()
  }

  // --- The end ----------------------------------------------------------------------------------------------------

  /**
   * Resolves with the reason when the conductor has to end by itself: after `maxJobs` jobs; when no job has run for `maxIdleTime`; with
   * `burst`, when no job is left to claim. Resolves with undefined when the signal fires, or if nothing ends it.
   */
  async whenOver(signal: AbortSignal): Promise<string | undefined> {
    const { burst, maxJobs, maxIdleTime } = this.#options
    if (!burst && maxJobs === undefined && maxIdleTime === undefined) return undefined
    this.#idleSince = monotonic()
    while (!signal.aborted) {
      const over = this.#reasonToStop()
      if (over !== undefined) return over
      using stop = followSignals([signal])
      using _timer = abortAfter(stop, this.#idleTimeLeft(), () => new Timeout('no job ran for maxIdleTime'))
      await this.changed.wait({ signal: stop.signal }).catch(() => undefined)
    }
    return undefined
  }

  #reasonToStop(): string | undefined {
    const { burst, maxJobs, maxIdleTime } = this.#options
    if (this.#running > 0) return undefined
    if (maxJobs !== undefined && this.#claimed >= maxJobs) return `it has claimed maxJobs (${maxJobs}) jobs`
    if (burst) {
      const isOver = this.#lanes.every(({ isExhausted, connection }) => isExhausted || connection === 'lost')
      if (isOver && this.#lanes.some(({ isExhausted }) => isExhausted))
        return 'no job is left to claim, and burst is set'
    }
    if (maxIdleTime === undefined || !this.#isWaiting || this.#idleSince + maxIdleTime > monotonic()) return undefined
    return `no job ran for maxIdleTime (${maxIdleTime} ms)`
  }

  /** Whether boards are watched for jobs, and none is asked or has some. */
  get #isWaiting(): boolean {
    const isBusy = this.#lanes.some(
      ({ state, connection }) => connection === 'there' && (state === 'ready' || state === 'asking'),
    )
    return !isBusy && this.#lanes.some(({ state }) => state === 'idle')
  }

  /** Returns the milliseconds until `maxIdleTime` is over; undefined if a change comes first. */
  #idleTimeLeft(): number | undefined {
    const { maxIdleTime } = this.#options
    if (maxIdleTime === undefined || this.#running > 0 || !this.#isWaiting) return undefined
    return Math.max(1, Math.ceil(this.#idleSince + maxIdleTime - monotonic()))
  }

  #wakeExhausted(): void {
    for (const lane of this.#lanes) {
      if (!lane.isExhausted) continue
      lane.isExhausted = false
      lane.wake.notify()
    }
  }

  // --- Who is next ------------------------------------------------------------------------------------------------

  /** The number of slots that are neither taken nor reserved, and that `maxJobs` still allows. */
  get #free(): number {
    const { maxJobs = Number.POSITIVE_INFINITY } = this.#options
    const reserved = this.#lanes.reduce((sum, lane) => sum + lane.reserved, 0)
    return Math.min(this.#count - this.#running, maxJobs - this.#claimed) - reserved
  }

  #grant(lane: Lane): number {
    const free = this.#free
    if (free < 1 || this.#isPaused || lane.state !== 'ready') return 0
    // A board alone waits for its connection by itself.
    if (lane.connection !== 'there' && !this.isSole(lane)) return 0
    const granted = this.#options.isWeighted ? this.#shareOf(lane, free) : this.#isFirst(lane) ? free : 0
    if (granted === 0) return 0
    lane.pass += granted / lane.weight
    lane.reserved = granted
    this.#setState(lane, 'asking')
    return granted
  }

  /** Returns whether no board before this one may have jobs. */
  #isFirst(lane: Lane): boolean {
    const earlier = this.#lanes.slice(0, this.#lanes.indexOf(lane))
    return earlier.every(({ state, connection }) => connection !== 'there' || state === 'idle' || state === 'out')
  }

  /** Returns how many of the free slots are for this board, if each goes to the ready board that has claimed the fewest for its weight. */
  #shareOf(lane: Lane, free: number): number {
    const ready = this.#lanes.filter(({ state, connection }) => state === 'ready' && connection === 'there')
    const passes = ready.map((each) => ({ lane: each, pass: each.pass }))
    let share = 0
    for (let slot = 0; slot < free; slot += 1) {
      const next = passes.reduce(
        (least, each) => (each.pass < least.pass ? each : least),
        passes[0] ?? { lane, pass: 0 },
      )
      next.pass += 1 / next.lane.weight
      if (next.lane === lane) share += 1
    }
    return share
  }

  #withdraw(lane: Lane): void {
    lane.pass -= lane.reserved / lane.weight
    lane.reserved = 0
    this.#pass = Math.max(this.#pass, lane.pass - 1 / lane.weight)
  }

  #setState(lane: Lane, state: Lane['state']): void {
    lane.state = state
    this.#watchFull()
    this.changed.notify()
  }

  /** Ends the watch of idle boards when all slots have been taken for some time: their changes would be received in vain. */
  #watchFull(): void {
    if (this.#lanes.length === 1) return
    const isWatching = this.#running >= this.#count && this.#lanes.some(({ state }) => state === 'idle')
    if (!isWatching) {
      clearTimeout(this.#fullTimer)
      this.#fullTimer = undefined
      return
    }
    this.#fullTimer ??= setTimeout(() => {
      this.#fullTimer = undefined
      for (const lane of this.#lanes) if (lane.state === 'idle') lane.wake.notify()
    }, FULL_LINGER_MS).unref()
  }
}
