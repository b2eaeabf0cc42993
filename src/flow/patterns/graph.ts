/** The graph pattern: each part comes after the parts that provide its arguments, and after the parts that link to it. */
import { AmbiguousDependency, DependencyFailure, InvalidArgument } from '../../core/errors.ts'
import type { KnownOptions } from '../../core/options.ts'
import { brand } from '../atoms/brand.ts'
import type { AnyRetry } from '../atoms/retry.ts'
import { type FlowLink, findAncestors, topologicalOrder } from './edges.ts'
import type { FittingGraph, FittingRetry, ProvidedBy, Results, ServicesOf } from './fit.ts'
import type { AnyPart, Flow, Input } from './flow.ts'
import { isLink, type Link } from './link.ts'
import {
  checkFlowHead,
  checkFlowParts,
  computeInputs,
  FLOW_OPTIONS,
  type FlowOptions,
  indexProviders,
  listPartNeeds,
} from './parts.ts'

/** The options of `graph`: the options of a flow, its edges, and its targets. */
export interface GraphOptions<Rt = AnyRetry, S = Readonly<Record<string, unknown>>> extends FlowOptions<Rt, S> {
  /** Further edges, in addition to the edges that follow from the parts' requirements; only these can have deciders. */
  readonly links?: readonly Link[]
  /** The wanted parts. The flow has only these, and the parts that have to come before them. */
  readonly targets?: readonly AnyPart[]
}

const KNOWN_OPTIONS: KnownOptions<GraphOptions> = { ...FLOW_OPTIONS, links: true, targets: true }

/**
 * Describes a flow whose parts (tasks and flows) may be listed in any order: a part that requires what another provides
 * comes after it. Links add further edges.
 *
 * @param nameOrOptions the name under which it is posted, or {@link GraphOptions}
 * @throws AmbiguousDependency when a part requires what several others provide
 * @throws DependencyFailure when parts wait for each other in a circle
 * @throws Duplicate when two tasks have the same name, also in inner flows
 * @throws InvalidArgument when there are no parts, or a link or a target names a part that is not among them
 * @example
 * const order = graph(
 *   { name: 'order', links: [link(check, refund, { decider: ({ check }: { check: string }) => check === 'paid' })] },
 *   input<{ id: string }>(), check, refund, report,
 * )
 */
export function graph<I, T extends readonly AnyPart[], Rt extends AnyRetry = never, O = I>(
  nameOrOptions: string | GraphOptions<Rt extends FittingRetry<O, Rt> ? Rt : FittingRetry<O, Rt>, NoInfer<O>>,
  store: Input<I, O>,
  ...parts: T extends FittingGraph<O, T, ProvidedBy<Rt>> ? T : FittingGraph<O, T, ProvidedBy<Rt>>
): Flow<I, Results<T, ProvidedBy<Rt>>, ServicesOf<T, Rt>> {
  const head = checkFlowHead(nameOrOptions, store, { pattern: 'graph', known: KNOWN_OPTIONS })
  const options: GraphOptions<unknown, NoInfer<O>> = typeof nameOrOptions === 'string'
    ? { name: nameOrOptions }
    : nameOrOptions
  const all = checkFlowParts(head, parts)
  const links = [...toEdges(head.name, all, options.links ?? []), ...impliedEdges(head.name, all)]
  assertNoCircle(head.name, all, links)
  const chosen = selectTargets(head.name, { parts: all, links, targets: options.targets })
  const inputs = computeInputs({ retry: head.retry, parts: chosen.parts }, 'others')
  const atoms = Object.freeze([...chosen.parts])
  return brand('flow', {
    kind: 'flow',
    pattern: 'graph',
    ...head,
    atoms,
    links: Object.freeze(chosen.links),
    ...inputs,
  })
}

function toEdges(flow: string, parts: readonly AnyPart[], links: readonly Link[]): FlowLink[] {
  const positions = new Map(parts.map((part, index) => [part, index]))
  const positionOf = (part: AnyPart): number => {
    const position = positions.get(part)
    if (position !== undefined) return position
    throw new InvalidArgument(`flow ${flow}: a link names ${part?.name}, which is not among its parts`)
  }
  if (!Array.isArray(links) || !links.every(isLink))
    throw new InvalidArgument(`flow ${flow}: links must be a list of link(from, to)`)
  return links.map(({ from, to, decider, depth }) => {
    return { from: positionOf(from), to: positionOf(to), decider, depth }
  })
}

/** Returns the edges from each provider to the parts that require its results. A part never provides for itself. */
function impliedEdges(flow: string, parts: readonly AnyPart[]): FlowLink[] {
  const positions = new Map(parts.map((part, index) => [part, index]))
  const providers = indexProviders(parts)
  const links: FlowLink[] = []
  for (const [to, part] of parts.entries()) {
    const linked = new Set<number>()
    for (const { name } of listPartNeeds(part)) {
      const others = (providers.get(name) ?? []).filter((provider) => provider !== part)
      if (others.length > 1) throw ambiguousError(flow, { part, name, others })
      for (const other of others) linked.add(positions.get(other) ?? -1)
    }
    for (const from of linked) links.push({ from, to, decider: undefined, depth: 'ALL' })
  }
  return links
}

function ambiguousError(
  flow: string,
  { part, name, others }: { part: AnyPart; name: string; others: readonly AnyPart[] },
): AmbiguousDependency {
  const several = others.map((other) => other.name).join(' and ')
  return new AmbiguousDependency(
    `flow ${flow}: ${part.name} requires ${name}, which ${several} provide; give each a name of its own, or rebind`,
  )
}

function assertNoCircle(flow: string, parts: readonly AnyPart[], links: readonly FlowLink[]): void {
  const inOrder = new Set(topologicalOrder(parts.length, links))
  if (inOrder.size === parts.length) return
  const stuck = parts.filter((_part, index) => !inOrder.has(index)).map((part) => part.name)
  throw new DependencyFailure(`flow ${flow}: these wait for each other in a circle, or for one: ${stuck.join(', ')}`)
}

function selectTargets(
  flow: string,
  { parts, links, targets }: { parts: readonly AnyPart[]; links: FlowLink[]; targets: readonly AnyPart[] | undefined },
): { parts: readonly AnyPart[]; links: FlowLink[] } {
  if (targets === undefined) return { parts, links }
  const unknown = Array.isArray(targets) ? targets.find((target) => !parts.includes(target)) : targets
  if (unknown !== undefined || targets.length === 0)
    throw new InvalidArgument(`flow ${flow}: targets must be a non-empty list of its parts`)
  const wanted = findAncestors(
    targets.map((target) => parts.indexOf(target)),
    parts.length,
    links,
  )
  const kept = parts.map((_part, index) => index).filter((index) => wanted.has(index))
  const moved = new Map(kept.map((index, position) => [index, position]))
  return {
    parts: kept.flatMap((index) => parts[index] ?? []),
    links: links.flatMap((edge) => {
      const [from, to] = [moved.get(edge.from), moved.get(edge.to)]
      return from === undefined || to === undefined ? [] : [{ ...edge, from, to }]
    }),
  }
}
