/** The size of a view's window in a URI: `?window=10000&windowBytes=268435456`. */
import { InvalidArgument } from '../../core/errors.ts'
import type { ResourceUri } from '../../core/uri.ts'
import { defaultWindowBytes } from '../model/posting/posting-codec.ts'

const DEFAULT_WINDOW_JOBS = 10_000
export interface WindowSize {
  /** The maximum number of jobs. */
  readonly window: number
  /** The maximum memory of the postings, in bytes. */
  readonly windowBytes: number
}

/** Reads the size of the window from a URI. @throws InvalidArgument */
export function windowSizeOf(uri: Pick<ResourceUri, 'parameters' | 'printable'>): WindowSize {
  return {
    window: numberOf(uri, { name: 'window', unit: 'jobs' }) ?? DEFAULT_WINDOW_JOBS,
    windowBytes: numberOf(uri, { name: 'windowBytes', unit: 'bytes' }) ?? defaultWindowBytes(),
  }
}

function numberOf(
  { parameters, printable }: Pick<ResourceUri, 'parameters' | 'printable'>,
  { name, unit }: { readonly name: string; readonly unit: string },
): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const number = Number(text)
  if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number > 0) return number
  throw new InvalidArgument(`${printable}: ${name} must be a number of ${unit}, at least 1, got '${text}'`)
}
