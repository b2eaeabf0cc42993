/** The unordered pattern: all parts at once, as far as the engine's concurrency allows. */
import { brand } from '../atoms/brand.ts'
import type { AnyRetry } from '../atoms/retry.ts'
import type { FittingApart, FittingRetry, ProvidedBy, Results, ServicesOf } from './fit.ts'
import type { AnyPart, Flow, Input } from './flow.ts'
import { checkFlowHead, checkFlowParts, computeInputs, FLOW_OPTIONS, type FlowOptions } from './parts.ts'

/**
 * Describes a flow whose parts (tasks and flows) do not wait for each other, and so cannot require results of each other. When
 * one fails, the engine waits for the parts under way; then all are reverted, in any order.
 *
 * @param nameOrOptions the name under which it is posted, or {@link FlowOptions}
 * @throws Duplicate when two tasks have the same name, also in inner flows
 * @throws InvalidArgument when there are no parts, or something in the list is not a part
 * @example const notify = unordered('notify', input<{ text: string }>(), mail, chat, log)
 */
export function unordered<I, T extends readonly AnyPart[], Rt extends AnyRetry = never, O = I>(
  nameOrOptions: string | FlowOptions<Rt extends FittingRetry<O, Rt> ? Rt : FittingRetry<O, Rt>, NoInfer<O>>,
  store: Input<I, O>,
  ...parts: T extends FittingApart<O, T, ProvidedBy<Rt>> ? T : FittingApart<O, T, ProvidedBy<Rt>>
): Flow<I, Results<T, ProvidedBy<Rt>>, ServicesOf<T, Rt>> {
  const head = checkFlowHead(nameOrOptions, store, { pattern: 'unordered', known: FLOW_OPTIONS })
  const atoms = checkFlowParts(head, parts)
  const inputs = computeInputs({ retry: head.retry, parts: atoms }, 'none')
  return brand('flow', { kind: 'flow', pattern: 'unordered', ...head, atoms, links: undefined, ...inputs })
}
