/** An edge of a graph flow that its author draws, and the decider that may sit on it. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { brand, hasBrand } from '../atoms/brand.ts'
import { DEPTHS, type Decider, type DeciderHistory, type Depth } from './edges.ts'
import type { AnyPart } from './flow.ts'

/** An edge of a graph: one part after another, perhaps only if a decider says yes. Made by `link`. */
export interface Link {
  readonly kind: 'link'
  readonly from: AnyPart
  readonly to: AnyPart
  readonly decider: Decider | undefined
  readonly depth: Depth
}

export interface LinkOptions<H> {
  /**
   * Says whether `to` is executed. It is asked when everything before `to` is done, may be asked again by whoever
   * resumes, and must not change anything.
   */
  readonly decider?: Decider<H>
  /** What is left out when it says no; ALL by default. */
  readonly depth?: Depth
}

const KNOWN_OPTIONS: KnownOptions<LinkOptions<DeciderHistory>> = { decider: true, depth: true }

/**
 * Draws an edge of a {@link graph}: `to` comes after `from`, whether it needs anything of it or not.
 *
 * @throws InvalidArgument for a decider that is no function, or a depth without a decider
 * @example link(check, repair, { decider: ({ check }: { check: string }) => check === 'broken', depth: 'FLOW' })
 */
export function link<H extends DeciderHistory = DeciderHistory>(
  from: AnyPart,
  to: AnyPart,
  options: LinkOptions<H> = {},
): Link {
  const what = `the link from ${from?.name} to ${to?.name}`
  assertOptions(options, KNOWN_OPTIONS, what)
  const { decider, depth } = options
  if (decider !== undefined && typeof decider !== 'function')
    throw new InvalidArgument(`${what}: decider has to be a function that says whether ${to.name} is executed`)
  if (depth !== undefined && !DEPTHS.includes(depth))
    throw new InvalidArgument(`${what}: depth is one of ${DEPTHS.join(', ')}`)
  if (depth !== undefined && !decider) throw new InvalidArgument(`${what}: a depth means nothing without a decider`)
  // The history has what its author knows it to have: the results of the tasks in `from`.
  return brand('link', { kind: 'link', from, to, decider: decider as Decider | undefined, depth: depth ?? 'ALL' })
}

export function isLink(value: unknown): value is Link {
  return hasBrand('link', value)
}
