/** A conductor as a daemon: the only place that touches the process' signals. */
import { constants } from 'node:os'
import type { Conductor } from './conductor.ts'
import { type ConductorOptions, startConductor } from './start-conductor.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/**
 * Runs a conductor until the process is told to end, and resolves when it has stopped. The first SIGINT or SIGTERM
 * drains it, the second aborts what still runs, the third ends the process at once.
 *
 * @param options.started called with the conductor once it claims
 * @throws as `startConductor`
 * @example await runConductor({ board: uri, persistence: uri, flows: [hello], concurrency: 8 })
 */
export async function runConductor(
  options: ConductorOptions & { readonly started?: (conductor: Conductor) => unknown },
): Promise<void> {
  const starting = new AbortController()
  let conductor: Conductor | undefined
  let signals = 0
  const onSignal = (signal: (typeof SIGNALS)[number]) => {
    signals += 1
    if (signals > 2) process.exit(128 + constants.signals[signal])
    if (!conductor) starting.abort(new Error(`${signal} came before the conductor had started`))
    else if (signals === 1) conductor.stop().catch(() => undefined)
    else conductor.abort()
  }
  for (const signal of SIGNALS) process.on(signal, onSignal)
  try {
    const signal = options.signal ? AbortSignal.any([starting.signal, options.signal]) : starting.signal
    conductor = await startConductor({ ...options, signal })
    options.started?.(conductor)
    if (signals > 0) conductor.stop().catch(() => undefined)
    await conductor.stopped
  } finally {
    // Also when `started` threw; and where the stop failed, this is where it is told.
    await conductor?.stop()
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}
