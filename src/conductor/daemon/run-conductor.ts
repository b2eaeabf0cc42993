/** Runs a conductor as a daemon. No other module handles signals and faults of the process. */
import { constants } from 'node:os'
import { traceExecution } from '../../core/async/execution.ts'
import { ShuttingDown } from '../../core/errors.ts'
import { daemonLog, type Logger } from '../../core/log.ts'
import { assertOptions } from '../../core/options.ts'
import { monotonic, toMilliseconds } from '../../core/time.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { ConductorBoard } from '../boards/board-entries.ts'
import type { Conductor } from '../conductor.ts'
import { CONDUCTOR_OPTIONS, type ConductorOptions, DEFAULT_ABORT_TIMEOUT } from '../options.ts'
import type { ServicesFor } from '../services/open.ts'
import { startConductor } from '../start-conductor.ts'
import { CrashHandler, onFault } from './crash.ts'

/** The options of a conductor that is the main purpose of its process. */
export interface RunConductorOptions extends ConductorOptions {
  /** Called with the conductor once it claims jobs. */
  readonly started?: (conductor: Conductor) => unknown
  /** Called when a signal has begun a stage of the stop; the conductor's `state` is `draining` or `aborting`. */
  readonly stopping?: (conductor: Conductor) => unknown
  /**
   * Called at SIGHUP, to read a configuration again: see `conductor.reconfigure`. If signals come while it runs, it is called once more
   * afterwards. An error is logged. Without `reload`, SIGHUP ends the process.
   */
  readonly reload?: (conductor: Conductor) => unknown
}

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const
type StopSignal = (typeof STOP_SIGNALS)[number]
/** The signal that pauses and resumes: Node reserves SIGUSR1 for its inspector. */
const PAUSE_SIGNAL = 'SIGUSR2'
const RELOAD_SIGNAL = 'SIGHUP'

/**
 * The time in which a repeated signal counts as the same key press: Ctrl-C in a terminal reaches every process there,
 * and the parent process (npm, a loader) may pass it on once more.
 */
const SAME_KEYPRESS_MS = 500

/**
 * Runs a conductor until the process receives a stop signal, and resolves when it has stopped. The first SIGINT or
 * SIGTERM drains it, the second aborts the running jobs, the third ends the process at once. SIGUSR2 pauses it, and
 * resumes a paused one. SIGHUP calls `reload`. It logs JSON lines to standard error unless another log is given.
 *
 * An uncaught exception or an unhandled rejection ends the process with exit code 1. It is logged once with its stack,
 * job and task; the job that caused it fails; all other jobs return to the board uncharged, within `abortTimeout`; a
 * board and logbooks that were given open are closed.
 *
 * @throws the errors of `startConductor`; ShuttingDown when a signal came before it had started; IncompatibleVersion after a stop
 * because the module of the pool has changed
 * @example await runConductor({ board: uri, persistence: uri, flows: [hello], concurrency: 8 })
 */
export async function runConductor<const F extends readonly AnyFlow[]>(
  options: RunConductorOptions & { readonly flows: F } & ServicesFor<F>,
): Promise<void> {
  assertOptions(options, { ...CONDUCTOR_OPTIONS, started: true, stopping: true, reload: true }, 'runConductor')
  const { started, stopping, reload, ...rest }: RunConductorOptions = options
  const log = rest.log ?? daemonLog()
  const early = new AbortController()
  let conductor: Conductor | undefined
  let starting: Promise<Conductor> | undefined
  const crash = new CrashHandler({
    log,
    conductor: async () => {
      if (!conductor) early.abort(new ShuttingDown('the process failed before the conductor had started'))
      return conductor ?? starting?.catch(() => undefined)
    },
    abortTimeout: readAbortTimeout(rest),
    opened: givenOpen(rest),
  })
  using _work = traceExecution()
  using _faults = onFault((fault) => crash.report(fault))
  using _presses = onStopSignal((signal, count) => {
    if (count > 2) process.exit(128 + constants.signals[signal])
    if (!conductor) return early.abort(new ShuttingDown(`${signal} came before the conductor had started`))
    if (count === 1) conductor.stop().catch(() => undefined)
    else conductor.abort()
    // In an async function, so that an error is logged whether the callback throws or rejects.
    const callback = async (stopped: Conductor) => stopping?.(stopped)
    callback(conductor).catch((error: unknown) => log.error({ err: error }, 'the callback stopping threw an error'))
  })
  let pausedEarly = false
  using _pauses = onSignal(PAUSE_SIGNAL, () => {
    if (!conductor) pausedEarly = !pausedEarly
    else if (conductor.state === 'paused') conductor.resume()
    else conductor.pause()
    if (conductor) log.info({ state: conductor.state }, `${PAUSE_SIGNAL}: the conductor is ${conductor.state}`)
  })
  const reloading = new Reloading(reload, log)
  using _reloads = reload ? onSignal(RELOAD_SIGNAL, () => reloading.request(conductor)) : undefined
  try {
    const signal = rest.signal ? AbortSignal.any([early.signal, rest.signal]) : early.signal
    starting = startConductor({ ...rest, log, signal })
    const running = await starting
    conductor = running
    if (pausedEarly) running.pause()
    reloading.begin(running)
    const callback = (async () => started?.(running))()
    if (early.signal.aborted) running.stop().catch(() => undefined)
    await Promise.race([running.stopped, callback.then(() => running.stopped)])
    // The process ends with an error, so that its supervisor starts it again.
    if (running.fault) throw running.fault
  } finally {
    // This also runs when `started` threw or rejected. A failed stop rejects here.
    try {
      await conductor?.stop()
    } finally {
      await crash.ending
    }
  }
}

/** Returns the boards and logbooks that were given open. Invalid ones are left out: `startConductor` reports them. */
function givenOpen({ board, boards = [], persistence }: ConductorOptions): readonly AsyncDisposable[] {
  const entries = Array.isArray(boards) ? boards.map((each: unknown) => Object(each) as Partial<ConductorBoard>) : []
  const places: unknown[] = [
    board,
    ...boards,
    ...entries.flatMap((each) => [each.board, each.persistence]),
    persistence,
  ]
  return places.filter((place) => typeof Object(place)[Symbol.asyncDispose] === 'function') as AsyncDisposable[]
}

/** Returns the time in milliseconds, or 0 for an invalid value: `startConductor` reports invalid options. */
function readAbortTimeout({ abortTimeout = DEFAULT_ABORT_TIMEOUT }: ConductorOptions): number {
  try {
    return toMilliseconds(abortTimeout, 'abortTimeout')
  } catch {
    return 0
  }
}

/** Calls `callback` at each stop signal with the number of stop signals so far, until it is disposed. */
function onStopSignal(callback: (signal: StopSignal, count: number) => void): Disposable {
  const counts = new Map<StopSignal, number>()
  let count = 0
  const listener = (signal: StopSignal) => {
    const last = counts.get(signal)
    const now = monotonic()
    if (last !== undefined && now - last < SAME_KEYPRESS_MS) return
    counts.set(signal, now)
    count += 1
    callback(signal, count)
  }
  for (const signal of STOP_SIGNALS) process.on(signal, listener)
  return {
    [Symbol.dispose]: () => {
      for (const signal of STOP_SIGNALS) process.off(signal, listener)
    },
  }
}

function onSignal(signal: NodeJS.Signals, callback: () => void): Disposable {
  process.on(signal, callback)
  return { [Symbol.dispose]: () => process.off(signal, callback) }
}

/** Calls `reload` at SIGHUP, one call at a time. */
class Reloading {
  readonly #reload: RunConductorOptions['reload']
  readonly #log: Logger
  #isWanted = false
  #isRunning = false

  constructor(reload: RunConductorOptions['reload'], log: Logger) {
    this.#reload = reload
    this.#log = log
  }

  /**
   * Calls `reload`, now or after the call under way.
   *
   * @param conductor undefined before it has started: then {@link begin} calls `reload`
   */
  request(conductor: Conductor | undefined): void {
    this.#isWanted = true
    if (conductor && !this.#isRunning) void this.#run(conductor)
  }

  /** Calls `reload` if a signal came before the conductor had started: the configuration may have been read before the signal. */
  begin(conductor: Conductor): void {
    if (this.#isWanted) this.request(conductor)
  }

  async #run(conductor: Conductor): Promise<void> {
    this.#isRunning = true
    while (this.#isWanted) {
      this.#isWanted = false
      if (isEnding(conductor)) {
        this.#log.info({ state: conductor.state }, `${RELOAD_SIGNAL}: nothing is reloaded, because the conductor stops`)
        continue
      }
      try {
        await this.#reload?.(conductor)
      } catch (error) {
        // What a stop has interrupted needs no other signal.
        if (isEnding(conductor)) continue
        this.#log.error({ err: error }, `${RELOAD_SIGNAL}: not everything was reloaded; send the signal again`)
      }
    }
    this.#isRunning = false
  }
}

function isEnding({ state }: Conductor): boolean {
  return state === 'draining' || state === 'aborting' || state === 'stopped'
}
