/**
 * Resolves a failure. The resolver asks the retry of the nearest flow around the atom; if that gives its flow up, it asks the
 * retry of the next outer flow, as if the inner retry had failed, and so on. If no retry is left, everything is reverted.
 *
 * With `deferReverts` (the default), giving up always leaves the decision to the outer retry. After the outermost one
 * everything is reverted, and nothing remains of a flow that is REVERTED. Without it (TaskFlow's default) only the flow that
 * was given up is reverted, unless an outer retry decides otherwise; the whole flow still ends as REVERTED, and work
 * outside of the inner flow remains.
 */
import type { Stoppable } from '../core/async/abort-flag.ts'
import { InvalidArgument } from '../core/errors.ts'
import { describeError, type Failure, failureOf } from '../core/failure.ts'
import type { Logger } from '../core/log.ts'
import { toMilliseconds } from '../core/time.ts'
import { type AtomNode, addFailure, type Decision, type RetryDecision } from '../flow/index.ts'
import type { AtomStates } from './atom-states.ts'

export type Resolution =
  | { readonly kind: 'RETRY'; readonly retry: AtomNode; readonly after: number }
  | { readonly kind: 'REVERT'; readonly retry: AtomNode }
  | { readonly kind: 'REVERT_ALL' }

export interface ResolverOptions {
  readonly atomStates: AtomStates
  readonly deferReverts: boolean
  readonly ask: (retry: AtomNode, about: { failure: Failure; atom: string }) => Promise<RetryDecision>
  readonly logger: Logger
  /** The suspend signal. A deciding retry follows it, too: an error after it fires is an interruption, not a failure. */
  readonly suspend: Stoppable
}

interface ResolvedDecision {
  readonly decision: Decision
  /** The pause in milliseconds. */
  readonly after: number
}

const KNOWN_DECISIONS: readonly unknown[] = ['RETRY', 'REVERT', 'REVERT_ALL'] satisfies Decision[]

const REVERT_ALL_RESOLUTION: Resolution = { kind: 'REVERT_ALL' }

export class Resolver {
  readonly #options: ResolverOptions

  constructor(options: ResolverOptions) {
    this.#options = options
  }

  /** Resolves to undefined if a retry was interrupted while it decided, and has to be asked again. */
  async resolve(failed: AtomNode, failure: Failure): Promise<Resolution | undefined> {
    const { retry } = failed
    if (!retry) return REVERT_ALL_RESOLUTION
    // This retry was added to the flow after the failed atom had begun: it has no part in this attempt.
    if (this.#options.atomStates.record(retry).state !== 'SUCCESS') return this.resolve(retry, failure)
    this.#remember(retry, { atom: failed.atom.name, failure })
    const decided = await this.#ask(retry, { atom: failed.atom.name, failure })
    if (!decided) return undefined
    const { decision, after } = decided
    if (decision === 'RETRY') return { kind: 'RETRY', retry, after }
    if (decision === 'REVERT_ALL') return REVERT_ALL_RESOLUTION
    const further = await this.resolve(retry, failure)
    if (!further || this.#options.deferReverts) return further
    return retry.retry && further.kind !== 'REVERT' ? further : { kind: 'REVERT', retry }
  }

  #remember(retry: AtomNode, failed: { readonly atom: string; readonly failure: Failure }): void {
    const { atomStates } = this.#options
    const history = addFailure(atomStates.record(retry).history ?? [], failed)
    if (history) atomStates.ledger.annotate(retry.atom.name, { history })
  }

  /** Asks a retry. If it throws, it has failed, its decision is unknown, and its flow is reverted. */
  async #ask(retry: AtomNode, about: { failure: Failure; atom: string }): Promise<ResolvedDecision | undefined> {
    try {
      return toDecision(await this.#options.ask(retry, about), retry.atom.name)
    } catch (error) {
      if (this.#options.suspend.aborted) return undefined
      this.#options.logger.warn({ retry: retry.atom.name }, `could not decide: ${describeError(error)}`)
      this.#options.atomStates.ledger.annotate(retry.atom.name, { failure: failureOf(error) })
      return { decision: 'REVERT', after: 0 }
    }
  }
}

/** @throws InvalidArgument for an invalid decision */
function toDecision(answer: RetryDecision, retry: string): ResolvedDecision {
  const { decision, after } = typeof answer === 'object' ? answer : { decision: answer, after: 0 }
  if (!KNOWN_DECISIONS.includes(decision))
    throw new InvalidArgument(`retry ${retry}: onFailure must return one of ${KNOWN_DECISIONS.join(', ')}`)
  return { decision, after: toMilliseconds(after, `the wait of retry ${retry}`) }
}
