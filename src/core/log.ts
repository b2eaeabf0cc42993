/** Logging with pino. The library logs nothing unless it is given a logger. */
import { hostname } from 'node:os'
import { type Logger, pino } from 'pino'
import { InvalidArgument } from './errors.ts'
import type { Redactor } from './redaction.ts'

export type { Logger }

/** A logger that writes nothing, at almost no cost. */
export const silentLog: Logger = pino({ level: 'silent' })

/**
 * Returns a logger that writes JSON lines to standard error, or to a stream, for daemons: standard output is for results. Only lines about a job
 * have a `name`, which is the name of the job: a JSON object with two names cannot be searched.
 */
export function daemonLog(options: { level?: string; stream?: { write(line: string): void } } = {}): Logger {
  const { level = 'info', stream } = options
  if (stream) return pino({ level, base: null }, stream)
  const destination = pino.destination({ fd: 2, sync: true })
  // A full disk of the log must not end the jobs.
  destination.on('error', () => undefined)
  return pino({ level, base: { pid: process.pid, hostname: hostname() } }, destination)
}

const LEVEL_METHODS = ['trace', 'debug', 'info', 'warn', 'error', 'isLevelEnabled'] as const satisfies (keyof Logger)[]

/** @throws InvalidArgument unless the value has the methods of a pino logger */
export function assertLogger(log: unknown): void {
  const methods: Readonly<Record<string, unknown>> = Object(log)
  const missing = LEVEL_METHODS.filter((name) => typeof methods[name] !== 'function')
  if (missing.length === 0) return
  throw new InvalidArgument(`log must be a pino logger, as in log: pino(); it has no ${missing.join(', ')}`)
}

const WRITING_METHODS: ReadonlySet<string> = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])

/** Returns a logger that redacts all values, also the values that its children log, before it passes them to `log`. */
export function redactedLog(log: Logger, redaction: Redactor): Logger {
  if (redaction.isEmpty) return log
  const clean = (values: readonly unknown[]) => values.map((value) => redaction.value(value))
  return new Proxy(log, {
    get: (target, key) => {
      const found: unknown = Reflect.get(target, key, target)
      if (typeof found !== 'function') return found
      if (key === 'child') {
        return (...values: readonly unknown[]) =>
          redactedLog(found.apply(target, [redaction.value(values[0]), ...values.slice(1)]) as Logger, redaction)
      }
      if (!WRITING_METHODS.has(String(key))) return found.bind(target)
      return (...values: readonly unknown[]) => {
        if (target.isLevelEnabled(String(key))) found.apply(target, clean(values))
      }
    },
  })
}

/** Returns a child that is made when it is first used: that costs more than a small task does, and most tasks log nothing. */
export function lazyChildLog(log: Logger, bindings: Readonly<Record<string, unknown>>): Logger {
  let child: Logger | undefined
  const made = () => {
    child ??= log.child(bindings)
    return child
  }
  // The target is no logger of the caller: a frozen one would forbid to return functions of the child.
  return new Proxy({} as Logger, {
    get: (_, key) => {
      const found: unknown = Reflect.get(made(), key, child)
      return typeof found === 'function' ? found.bind(child) : found
    },
    set: (_, key, value) => Reflect.set(made(), key, value),
  })
}

/** Returns a child that always has the level of the logger: a child of pino keeps the level that its parent had when it was made. */
export function childLog(log: Logger, bindings: Readonly<Record<string, unknown>>): Logger {
  return new Proxy(log.child(bindings), {
    get: (child, key) => {
      if (child.level !== log.level) child.level = log.level
      const found: unknown = Reflect.get(child, key, child)
      return typeof found === 'function' ? found.bind(child) : found
    },
  })
}
