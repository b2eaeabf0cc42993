/**
 * Transactions that are made of parts. A feature that a job uses (a key, limits, resources, dependencies, a batch, the history) adds one part
 * to the transactions of the job: steps, the names that they touch, and what the refusal of one of them means. A job that does not use a
 * feature has no part of it.
 *
 * | answer to a refusal | effect |
 * |---|---|
 * | an error | the caller receives it |
 * | {@link TRY_AGAIN} | nothing was done, because the transaction was made of old knowledge: {@link untilDone} makes it anew |
 * | any other `{ answer }` | the operation resolves with its result; it may look first at what the servers have |
 */

import type { CheckOp, ZooKeeperError } from '../../../../zookeeper/index.ts'
import type {
  Addition,
  JournalEntry,
  Precheck,
  RefusalMeaning,
  RefusedStep,
  TouchedName,
  Transaction,
  TransactionStep,
} from './transaction.ts'

/** The answer of a transaction that has to be made anew. */
export const AGAIN: Again = { isAgain: true }

/** The type of {@link AGAIN}, which is recognised by its identity. */
export interface Again {
  readonly isAgain: true
}

/** Returns whether a transaction has to be made anew. */
export function isAgain(answer: unknown): answer is Again {
  return answer === AGAIN
}

export const TRY_AGAIN: RefusalMeaning<Again> = { answer: () => AGAIN }

/** A part of a transaction that a feature adds. Its steps are among the steps of the transaction, which decides their order. */
export interface TransactionPart<T> {
  readonly steps?: readonly TransactionStep[]
  readonly touches?: readonly TouchedName[]
  readonly guard?: CheckOp | undefined
  readonly additions?: readonly Addition[] | undefined
  readonly entry?: JournalEntry | undefined
  readonly prechecks?: readonly Precheck<T>[] | undefined
  /** Returns the same as {@link Transaction.getConflict}. */
  getConflict?(): RefusalMeaning<T> | undefined
  repair?(step: TransactionStep, error: ZooKeeperError): (() => Promise<unknown>) | undefined
  /** Returns what the refusal of a step of this part means; undefined for an error that is not about the feature. */
  onRefused?(error: ZooKeeperError, step: RefusedStep): RefusalMeaning<T> | undefined
}

/** Returns the transaction with its parts. A refused step is explained by the part that it belongs to. */
export function withParts<T>(
  transaction: Transaction<T>,
  parts: readonly (TransactionPart<T> | undefined)[],
): Transaction<T> {
  const present = parts.filter((part) => part !== undefined)
  if (present.length === 0) return transaction
  let { additions, prechecks, guard, entry } = transaction
  let touches: readonly TouchedName[] | undefined = transaction.touches
  for (const part of present) {
    touches = concat(touches, part.touches)
    additions = concat(additions, part.additions)
    prechecks = concat(prechecks, part.prechecks)
    guard ??= part.guard
    entry ??= part.entry
  }
  const all: readonly TransactionPart<T>[] = [transaction, ...present]
  return {
    ...transaction,
    ...{ touches: touches ?? [], additions, prechecks, guard, entry },
    getConflict: () => {
      for (const part of all) {
        const conflict = part.getConflict?.()
        if (conflict) return conflict
      }
      return undefined
    },
    repair: (step, error) => (ownerOf(step, present) ?? transaction).repair?.(step, error),
    onRefused: (error, step) => {
      const part = ownerOf(step, present)
      return part ? (part.onRefused?.(error, step) ?? error) : transaction.onRefused(error, step)
    },
  }
}

/** Returns the elements of both lists. Copies nothing where one of them is empty, as for most transactions. */
function concat<E>(list: readonly E[] | undefined, more: readonly E[] | undefined): readonly E[] | undefined {
  if (more === undefined || more.length === 0) return list
  return list === undefined || list.length === 0 ? more : [...list, ...more]
}

function ownerOf<T>(step: RefusedStep, parts: readonly TransactionPart<T>[]): TransactionPart<T> | undefined {
  if (step === undefined) return undefined
  if (step === 'guard') return parts.find(({ guard }) => guard)
  const { shared } = step
  if (shared === undefined) return parts.find(({ steps }) => steps?.includes(step))
  return parts.find((part) => part.entry?.journal === shared || part.additions?.some(({ sum }) => sum === shared))
}

/** Repeats an attempt until its answer is another one than {@link AGAIN}. */
export async function untilDone<T>(attempt: () => Promise<T | Again>): Promise<T> {
  while (true) {
    const answer = await attempt()
    if (!isAgain(answer)) return answer as T
  }
}
