/** Links: explicit edges of a graph flow, each with an optional decider. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { brand, hasBrand } from '../atoms/brand.ts'
import { DEPTHS, type Decider, type DeciderHistory, type Depth } from './edges.ts'
import type { AnyPart } from './flow.ts'

/** An edge of a graph, made by `link`: one part after another, with an optional decider. */
export interface Link {
  readonly kind: 'link'
  readonly from: AnyPart
  readonly to: AnyPart
  readonly decider: Decider | undefined
  readonly depth: Depth
}

export interface LinkOptions<H> {
  /**
   * Returns whether `to` is executed. It is called when everything before `to` is done, and may be called again when the flow
   * is resumed. It must not change anything.
   */
  readonly decider?: Decider<H>
  /** The part of the flow that is left out when the decider returns false; ALL by default. */
  readonly depth?: Depth
}

const KNOWN_OPTIONS: KnownOptions<LinkOptions<DeciderHistory>> = { decider: true, depth: true }

/**
 * Describes an edge of a `graph`: `to` comes after `from`, also if it requires nothing from it.
 *
 * @throws InvalidArgument for a decider that is not a function, or a depth without a decider
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
    throw new InvalidArgument(`${what}: decider must be a function that returns whether ${to.name} is executed`)
  if (depth !== undefined && !DEPTHS.includes(depth))
    throw new InvalidArgument(`${what}: depth must be one of ${DEPTHS.join(', ')}`)
  if (depth !== undefined && !decider) throw new InvalidArgument(`${what}: a depth needs a decider`)
  // The history has the type that the author declares: the results of the tasks in `from`.
  return brand('link', { kind: 'link', from, to, decider: decider as Decider | undefined, depth: depth ?? 'ALL' })
}

export function isLink(value: unknown): value is Link {
  return hasBrand('link', value)
}
