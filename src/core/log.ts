/** Logging is pino's; a library says nothing unless it is given a logger. */
import { type Logger, pino } from 'pino'
import { InvalidArgument } from './errors.ts'

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

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'isLevelEnabled'] as const satisfies (keyof Logger)[]

/** @throws InvalidArgument unless it is as a logger of pino */
export function assertLogger(log: unknown): void {
  const methods: Readonly<Record<string, unknown>> = Object(log)
  const missing = LEVELS.filter((name) => typeof methods[name] !== 'function')
  if (missing.length === 0) return
  throw new InvalidArgument(`log: a logger of pino is needed, as in log: pino(); this one has no ${missing.join(', ')}`)
}
