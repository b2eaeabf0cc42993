/** Reading options: those of all commands, and the shapes they come in. */
import { InvalidArgumentError } from 'commander'
import { InvalidArgument } from '../core/errors.ts'
import { milliseconds } from '../core/time.ts'
import type { CliContext } from './context.ts'

/** Given before or behind the command's name. */
export interface SharedOptions {
  readonly board?: string
  readonly persistence?: string
  readonly timeout?: string
  readonly verbose?: boolean
}

export const DEFAULT_TIMEOUT = '10s'

/** @throws InvalidArgument where neither the option nor the variable is there: a board is never guessed */
export function boardUri(options: SharedOptions, context: CliContext): string {
  const uri = options.board || context.env['JOBBOARD_BOARD']
  if (uri) return uri
  throw new InvalidArgument(
    'no board was named: give --board URI or set JOBBOARD_BOARD, as in --board zookeeper://127.0.0.1:2181/demo',
  )
}

export function persistenceUri(options: SharedOptions, context: CliContext): string | undefined {
  return options.persistence || context.env['JOBBOARD_PERSISTENCE'] || undefined
}

/** Milliseconds of `10s`, `1.5m` or `250`. @throws InvalidArgument */
export function duration(text: string, what: string): number {
  return milliseconds(/^\d+$/.test(text) ? Number(text) : text, what)
}

/** A whole number from 1. For commander, which names the option. */
export function count(text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= 1) return value
  throw new InvalidArgumentError('Give a whole number from 1.')
}

/** One of a few words, in any case. For commander, which names the option. */
export function oneOf<T extends string>(words: readonly T[]): (text: string) => T {
  return (text) => {
    const found = words.find((word) => word.toLowerCase() === text.toLowerCase())
    if (found) return found
    throw new InvalidArgumentError(`Allowed choices are ${words.join(', ')}.`)
  }
}

/**
 * The object that a JSON text is. What is in it is never repeated: it may hold secrets.
 *
 * @throws InvalidArgument
 */
export function jsonObject(text: string, what: string): Record<string, unknown> {
  const value = parsed(text, what)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new InvalidArgument(`${what} has to be a JSON object with the flow's inputs, such as '{"name":"Ada"}'`)
}

/** Without the cause, because the parser's own error quotes the text. */
function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new InvalidArgument(`${what} is not JSON; quote it for the shell, as in ${what} '{"name":"Ada"}'`)
  }
}
