/**
 * Limits what a run's end shows on the board to all who can read the board: reasons of attempts, and the failures of
 * jobs in the trash.
 *
 * The errors of tasks are as secret as their results. If logbooks encrypt, the board gets only the names and codes
 * of the errors, and a hint where the rest is.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { type Failure, failureOf, WrappedFailure } from '../../core/failure.ts'
import { defined } from '../../core/options.ts'
import { Redactor } from '../../core/redaction.ts'
import { decide, type OnFailure, type RunEnding, type Verdict } from './decide.ts'

/** The part of a task's errors that the board gets: `whole`, or only the `named` classes and codes of the errors. */
export type FailuresOnBoard = 'whole' | 'named'

export interface DisclosureOptions {
  /** Names of keys whose values are redacted, as in logs. */
  readonly redact?: readonly string[] | undefined
  readonly failuresOnBoard?: FailuresOnBoard | undefined
  /** Whether the logbooks encrypt; the default of `failuresOnBoard` depends on it. */
  readonly encrypted: boolean
}

const SEE_LOGBOOK = 'see the logbook'
/** The hint for a defect: the logbook has no record of it. */
const SEE_LOG = "see the conductor's log"

export class DisclosurePolicy {
  readonly #redaction: Redactor
  readonly #named: boolean

  /** @throws InvalidArgument when `redact` is not a list of keys */
  constructor({ redact = [], failuresOnBoard, encrypted }: DisclosureOptions) {
    this.#redaction = new Redactor(redact)
    this.#named = (failuresOnBoard ?? (encrypted ? 'named' : 'whole')) === 'named'
  }

  /** Decides as {@link decide} does, in words that may be shown on the board. */
  decide(ending: RunEnding, options: { onFailure: OnFailure }): Verdict {
    const verdict = decide(this.#named ? withoutTexts(ending) : ending, options)
    if (this.#redaction.isEmpty) return verdict
    return {
      ...verdict,
      ...('reason' in verdict ? { reason: this.text(verdict.reason) } : {}),
      ...('failure' in verdict ? { failure: this.#redaction.failure(verdict.failure) } : {}),
    }
  }

  text(text: string): string {
    return this.#redaction.text(text)
  }
}

/** Checks the option `failuresOnBoard`. @throws InvalidArgument */
export function assertFailuresOnBoard(choice: unknown, where: string): void {
  if (choice === undefined || choice === 'whole' || choice === 'named') return
  throw new InvalidArgument(`${where}: failuresOnBoard must be 'whole' or 'named'`)
}

/**
 * Returns the ending without the texts of tasks. The texts of jobboard itself, about a posting or a storage, are kept.
 */
function withoutTexts(ending: RunEnding): RunEnding {
  const named = (failure: Failure) => toNamedFailure(failure, SEE_LOGBOOK)
  if (ending.kind === 'flow') {
    const { failures, revertFailures } = ending
    return { ...ending, failures: failures.map(named), revertFailures: revertFailures.map(named) }
  }
  if (ending.kind === 'defect')
    return { ...ending, error: new WrappedFailure([toNamedFailure(failureOf(ending.error), SEE_LOG)]) }
  return ending
}

/** The pattern of error names and codes: any other text could be a sentence. */
const IDENTIFIER_PATTERN = /^[\w$.-]{1,100}$/

/**
 * Returns the failure without its texts. Whether and when the job is tried again still follows from the remaining
 * fields.
 */
function toNamedFailure(
  { name, code, causes = [], nonRetryable, retryAfter, limitKey, nextQueue }: Failure,
  message: string,
): Failure {
  return {
    name: IDENTIFIER_PATTERN.test(name) ? name : 'Error',
    message,
    ...defined({
      code: code !== undefined && IDENTIFIER_PATTERN.test(code) ? code : undefined,
      causes: causes.length > 0 ? causes.map((cause) => toNamedFailure(cause, message)) : undefined,
      nonRetryable,
      retryAfter,
      limitKey,
      nextQueue,
    }),
  }
}
