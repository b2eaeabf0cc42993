/** The linear pattern: one part after the other, in the order of the list. */
import { brand } from '../atoms/brand.ts'
import type { AnyRetry } from '../atoms/retry.ts'
import type { Fitting, FittingRetry, ProvidedBy, Results, ServicesOf } from './fit.ts'
import type { AnyPart, Flow, Input } from './flow.ts'
import { checkFlowHead, checkFlowParts, computeInputs, FLOW_OPTIONS, type FlowOptions } from './parts.ts'

/**
 * Describes a flow that executes its parts (tasks and flows) in order and, when one fails, reverts them in reverse order. The
 * compiler checks that each part gets what it requires, with the right type, from the input or from an earlier part.
 *
 * If a name is in the store and a task provides it, too, every task gets the value of the store.
 *
 * @param nameOrOptions the name under which it is posted, or {@link FlowOptions}
 * @throws Duplicate when two tasks have the same name, also in inner flows
 * @throws InvalidArgument when there are no parts, or something in the list is not a part
 * @example const hello = linear('hello', input<{ name: string }>(), greet, print)
 */
export function linear<I, T extends readonly AnyPart[], Rt extends AnyRetry = never, O = I>(
  nameOrOptions: string | FlowOptions<Rt extends FittingRetry<O, Rt> ? Rt : FittingRetry<O, Rt>, NoInfer<O>>,
  store: Input<I, O>,
  ...parts: T extends Fitting<O, T, ProvidedBy<Rt>> ? T : Fitting<O, T, ProvidedBy<Rt>>
): Flow<I, Results<T, ProvidedBy<Rt>>, ServicesOf<T, Rt>> {
  const head = checkFlowHead(nameOrOptions, store, { pattern: 'linear', known: FLOW_OPTIONS })
  const atoms = checkFlowParts(head, parts)
  const inputs = computeInputs({ retry: head.retry, parts: atoms }, 'earlier')
  return brand('flow', { kind: 'flow', pattern: 'linear', ...head, atoms, links: undefined, ...inputs })
}
