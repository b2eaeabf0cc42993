/**
 * What of a run's ending goes to the board, where everybody who can read the board sees it: reasons of attempts, and the
 * failures of jobs in the trash.
 *
 * What tasks throw is as secret as what they return. Where logbooks encrypt it, the board gets the names and codes of the
 * errors only, and the words that say where the rest is.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { type Failure, failureOf, WrappedFailure } from '../../core/failure.ts'
import { Redactor } from '../../core/redaction.ts'
import { decide, type OnFailure, type RunEnding, type Verdict } from './decide.ts'

/** How much of what tasks throw goes to the board: `whole`, or only the `named` classes and codes of the errors. */
export type FailuresOnBoard = 'whole' | 'named'

export interface DisclosureOptions {
  /** Names of keys whose values are hidden, as in logs. */
  readonly redact?: readonly string[] | undefined
  readonly failuresOnBoard?: FailuresOnBoard | undefined
  /** Whether the logbooks encrypt: the default of `failuresOnBoard` follows from it. */
  readonly encrypted: boolean
}

const SEE_LOGBOOK = 'see the logbook'
/** Of a defect nothing is in the logbook. */
const SEE_LOG = "see the conductor's log"

export class DisclosurePolicy {
  readonly #redaction: Redactor
  readonly #named: boolean

  /** @throws InvalidArgument for a list of keys that is none */
  constructor({ redact = [], failuresOnBoard, encrypted }: DisclosureOptions) {
    this.#redaction = new Redactor(redact)
    this.#named = (failuresOnBoard ?? (encrypted ? 'named' : 'whole')) === 'named'
  }

  /** Decides as {@link decide} does, in words that the board may have. */
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

/** @throws InvalidArgument */
export function assertFailuresOnBoard(choice: unknown, where: string): void {
  if (choice === undefined || choice === 'whole' || choice === 'named') return
  throw new InvalidArgument(`${where}: failuresOnBoard must be 'whole' or 'named'`)
}

/** What jobboard itself says, of a posting or a storage, stays: no task has said it. */
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

/** Names and codes that look like those of errors: anybody can write a sentence there. */
const IDENTIFIER_PATTERN = /^[\w$.-]{1,100}$/

/** The failure without its texts. Whether and when the job is tried again follows from what is left. */
function toNamedFailure({ name, code, causes = [], nonRetryable, retryAfter }: Failure, message: string): Failure {
  return {
    name: IDENTIFIER_PATTERN.test(name) ? name : 'Error',
    message,
    ...(code !== undefined && IDENTIFIER_PATTERN.test(code) ? { code } : {}),
    ...(causes.length > 0 ? { causes: causes.map((cause) => toNamedFailure(cause, message)) } : {}),
    ...(nonRetryable ? { nonRetryable } : {}),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  }
}
