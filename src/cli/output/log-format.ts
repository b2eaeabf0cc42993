/** The format of the daemon's log: JSON lines for programs, or lines for people where pino-pretty is installed. */
import { InvalidArgument } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'
import type { LogFormat } from '../input/choices.ts'
import { escapeUnprintable } from './render/text.ts'

/** Receives the JSON lines of a log. */
export interface LogStream {
  write(line: string): void
}

/**
 * Returns the stream that prints a log for people; undefined for JSON lines. `auto` prints for people on a terminal, if pino-pretty is installed.
 *
 * @throws InvalidArgument for `pretty` without pino-pretty
 */
export async function openLogStream(
  format: LogFormat,
  { stderr, env }: Pick<CliContext, 'stderr' | 'env'>,
): Promise<LogStream | undefined> {
  const isTerminal = stderr.columns !== undefined
  if (format === 'json' || (format === 'auto' && !isTerminal)) return undefined
  const pretty = await loadPretty()
  if (pretty) {
    const colorize = isTerminal && !env['NO_COLOR']
    const lines = pretty({
      colorize,
      destination: 2,
      sync: true,
      ignore: 'pid,hostname',
      translateTime: 'SYS:HH:MM:ss.l',
    })
    // A terminal that is gone must not end the jobs.
    lines.on('error', () => undefined)
    return { write: (line) => lines.write(toPrintable(line)) }
  }
  if (format === 'auto') return undefined
  throw new InvalidArgument('--log-format pretty needs the package pino-pretty: run npm install pino-pretty')
}

async function loadPretty() {
  try {
    return (await import('pino-pretty')).default
  } catch (error) {
    if (Object(error).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  }
}

/** Escapes what a terminal would take for commands: names of jobs come from others. */
function toPrintable(line: string): string {
  const clean = (key: string, value: unknown) => {
    if (typeof value !== 'string') return value
    return key === 'stack' ? value.split('\n').map(escapeUnprintable).join('\n') : escapeUnprintable(value)
  }
  return `${JSON.stringify(JSON.parse(line, clean))}\n`
}
