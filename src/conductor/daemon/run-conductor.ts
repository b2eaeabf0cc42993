/** A conductor as a daemon: the only place that touches the process' signals, and listens for its faults. */
import { constants } from 'node:os'
import { traceExecution } from '../../core/async/work.ts'
import { ShuttingDown } from '../../core/errors.ts'
import { daemonLog } from '../../core/log.ts'
import { assertOptions } from '../../core/options.ts'
import { monotonic, toMilliseconds } from '../../core/time.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { Conductor } from '../conductor.ts'
import { CONDUCTOR_OPTIONS, type ConductorOptions, DEFAULT_ABORT_TIMEOUT } from '../options.ts'
import type { ServicesFor } from '../services.ts'
import { startConductor } from '../start-conductor.ts'
import { CrashHandler, onFault } from './crash.ts'

/** Of a conductor that is a process' whole purpose. */
export interface RunConductorOptions extends ConductorOptions {
  /** Called with the conductor once it claims. */
  readonly started?: (conductor: Conductor) => unknown
  /** Called when a signal has begun a stage of the stop; the conductor's `state` says which, `draining` or `aborting`. */
  readonly stopping?: (conductor: Conductor) => unknown
}

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const
type StopSignal = (typeof STOP_SIGNALS)[number]
/** Node keeps SIGUSR1 for its inspector. */
const PAUSE_SIGNAL = 'SIGUSR2'

/**
 * Ctrl-C in a terminal reaches every process there, and what started us (npm, a loader) may pass it on to us once more:
 * what comes again within so many milliseconds is the same press.
 */
const SAME_KEYPRESS_MS = 500

/**
 * Runs a conductor until the process is told to end, and resolves when it has stopped. The first SIGINT or SIGTERM
 * drains it, the second aborts what still runs, the third ends the process at once. SIGUSR2 pauses it, and resumes one
 * that is paused. It logs JSON lines to standard error unless it is given another log.
 *
 * An exception that nothing caught, or a rejection that nothing handled, ends the process with exit code 1: logged once with
 * its stack, job and task; the job that it came from has failed, all others go back to the board uncharged, within
 * `abortTimeout`; a board and logbooks that were given open are closed.
 *
 * @throws as `startConductor`; ShuttingDown when a signal came before it had started
 * @example await runConductor({ board: uri, persistence: uri, flows: [hello], concurrency: 8 })
 */
export async function runConductor<const F extends readonly AnyFlow[]>(
  options: RunConductorOptions & { readonly flows: F } & ServicesFor<F>,
): Promise<void> {
  assertOptions(options, { ...CONDUCTOR_OPTIONS, started: true, stopping: true }, 'runConductor')
  const { started, stopping, ...rest }: RunConductorOptions = options
  const log = rest.log ?? daemonLog({ name: 'jobboard' })
  const early = new AbortController()
  let conductor: Conductor | undefined
  let starting: Promise<Conductor> | undefined
  const crash = new CrashHandler({
    log,
    conductor: async () => {
      if (!conductor) early.abort(new ShuttingDown('the process had a fault before the conductor had started'))
      return conductor ?? starting?.catch(() => undefined)
    },
    abortTimeout: readAbortTimeout(rest),
    opened: [rest.board, rest.persistence].filter((place) => typeof place !== 'string'),
  })
  using _work = traceExecution()
  using _faults = onFault((fault) => crash.report(fault))
  using _presses = onStopSignal((signal, count) => {
    if (count > 2) process.exit(128 + constants.signals[signal])
    if (!conductor) return early.abort(new ShuttingDown(`${signal} came before the conductor had started`))
    if (count === 1) conductor.stop().catch(() => undefined)
    else conductor.abort()
    // It may be synchronous, or not.
    const callback = async (stopped: Conductor) => stopping?.(stopped)
    callback(conductor).catch((error: unknown) => log.error({ err: error }, 'stopping threw'))
  })
  let pausedEarly = false
  using _pauses = onPauseSignal(() => {
    if (!conductor) pausedEarly = !pausedEarly
    else if (conductor.state === 'paused') conductor.resume()
    else conductor.pause()
    if (conductor) log.info({ state: conductor.state }, `${PAUSE_SIGNAL}: the conductor is ${conductor.state}`)
  })
  try {
    const signal = rest.signal ? AbortSignal.any([early.signal, rest.signal]) : early.signal
    starting = startConductor({ ...rest, log, signal })
    const running = await starting
    conductor = running
    if (pausedEarly) running.pause()
    const callback = (async () => started?.(running))()
    if (early.signal.aborted) running.stop().catch(() => undefined)
    await Promise.race([running.stopped, callback.then(() => running.stopped)])
  } finally {
    // Also when `started` threw, or rejected; and where the stop failed, this is where it is told.
    try {
      await conductor?.stop()
    } finally {
      await crash.ending
    }
  }
}

/** In milliseconds. What is wrong with the options is found when the conductor starts. */
function readAbortTimeout({ abortTimeout = DEFAULT_ABORT_TIMEOUT }: ConductorOptions): number {
  try {
    return toMilliseconds(abortTimeout, 'abortTimeout')
  } catch {
    return 0
  }
}

/** Calls `told` with how often the process has been told to end by now, until it is disposed. */
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

function onPauseSignal(callback: () => void): Disposable {
  process.on(PAUSE_SIGNAL, callback)
  return { [Symbol.dispose]: () => process.off(PAUSE_SIGNAL, callback) }
}
