/** How much of a board a view holds, as a URI says it: `?window=10000`. */
import { InvalidArgument } from '../core/errors.ts'
import type { ResourceUri } from '../core/uri.ts'

const DEFAULT_WINDOW = 10_000

/** @throws InvalidArgument */
export function windowOf({ parameters, printable }: Pick<ResourceUri, 'parameters' | 'printable'>): number {
  const text = parameters.get('window')
  if (text === undefined) return DEFAULT_WINDOW
  const window = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(window) && window > 0) return window
  throw new InvalidArgument(`${printable}: window has to be a number of jobs, from 1`)
}
