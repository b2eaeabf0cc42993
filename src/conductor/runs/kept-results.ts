/** Prepares the results of a job for the board that keeps them. */
import { encodeKeptResults, type FlowRules } from '../../board/internal.ts'
import { describeError } from '../../core/failure.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { Persistence, ResultPlace } from '../../persistence/index.ts'

/** Returns what is kept of a job: what its posting says, else the settings on the board, else the code of its flow. */
export function keptOf(
  { name, keepLogbooks, keepResults }: AnyFlow,
  { rules, resultTtl }: { readonly rules: FlowRules; readonly resultTtl: number | undefined },
): Pick<AnyFlow, 'keepLogbooks' | 'keepResults'> {
  return {
    keepLogbooks: resultTtl ?? rules.valueOf(name, 'keepLogbooks') ?? keepLogbooks,
    keepResults: rules.valueOf(name, 'keepResults') ?? keepResults,
  }
}

/**
 * Returns the results for the board, sealed as the logbooks seal them; undefined unless the flow keeps results. Never throws: results that cannot
 * be kept do not change that the job is done, and the reason is kept instead.
 */
export function toKeptResults(
  { keepResults }: Pick<AnyFlow, 'keepResults'>,
  {
    results,
    place,
    persistence,
  }: {
    readonly results: Readonly<Record<string, unknown>>
    readonly place: ResultPlace
    readonly persistence: Pick<Persistence, 'sealResults' | 'encrypts'>
  },
): Uint8Array | undefined {
  if (!keepResults) return undefined
  try {
    // Nothing may reach the board in plain text that the logbooks encrypt.
    if (persistence.encrypts && !persistence.sealResults)
      return encodeKeptResults({ notKept: 'the logbooks encrypt, and cannot seal results for the board' })
    return encodeKeptResults(persistence.sealResults?.(results, place) ?? { values: results })
  } catch (error) {
    return encodeKeptResults({ notKept: describeError(error) })
  }
}
