/** Logging is pino's; a library says nothing unless it is given a logger. */
import { type Logger, pino } from 'pino'

export type { Logger }

/** Says nothing and costs next to nothing. */
export const silent: Logger = pino({ level: 'silent' })

/** JSON lines on standard error, for daemons: standard output belongs to results. */
export function daemonLog(options: { level?: string; name: string }): Logger {
  const destination = pino.destination({ fd: 2, sync: true })
  // A full disk under the log must not end the jobs.
  destination.on('error', () => undefined)
  return pino({ name: options.name, level: options.level ?? 'info' }, destination)
}
