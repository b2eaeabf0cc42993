/** Reads what claims have taken of limits, and takes tokens for calls outside of claims. */
import { defined } from '../../../core/options.ts'
import type { BackendLimits } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import {
  type LimitUse,
  MAX_USED_KEYS,
  type TokenRate,
  type TokenRequest,
  type TokensTaken,
} from '../../model/limits.ts'
import type { RedisBoard } from './commit/board.ts'
import { type ScriptStep, SMALL_STEP_BYTES } from './commit/steps.ts'
import { decodeText } from './store/encodings.ts'
import { fieldName } from './store/layout.ts'
import { toList, toTexts } from './store/replies.ts'

export class RedisLimits implements BackendLimits {
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.#board = board
  }

  async revision(): Promise<number> {
    const value = await this.#board.value('board', 'limits')
    return value ? Number(decodeText(value)) : 0
  }

  async use(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    const fields = keys?.map((key) => fieldName(key)) ?? (await this.#usedFields())
    if (fields.length === 0) return []
    const [counts, rated, arrivals] = await Promise.all([
      this.#board.command('hmget', 'slots', ...fields),
      this.#board.command('hmget', 'intervals', ...fields),
      Promise.all(fields.map((field) => this.#board.command('zscore', 'rates', field))),
    ])
    const numbers = (answer: unknown) =>
      toTexts(answer).map((text) => (text === 'null' || text === '' ? undefined : Number(text)))
    const [taken, times, takenBy] = [numbers(counts), numbers(arrivals), toTexts(rated).map(parseRate)]
    return fields.flatMap((field, index) => {
      const [count = 0, arrivalMs] = [taken[index], times[index]]
      const key = keys?.[index] ?? toKey(field)
      return count > 0 || arrivalMs !== undefined
        ? [{ key, slots: count, arrivalMs, ...defined({ rate: takenBy[index] }) }]
        : []
    })
  }

  /** Returns the fields of the keys with taken slots or tokens. */
  async #usedFields(): Promise<readonly string[]> {
    const [, slots] = toList(await this.#board.command('hscan', 'slots', '0', 'COUNT', String(MAX_USED_KEYS)))
    const held = toTexts(slots).filter((_, index) => index % 2 === 0)
    const newest = toTexts(await this.#board.command('zrevrange', 'rates', '0', String(MAX_USED_KEYS - 1)))
    // The field of a very long key is a hash: the key cannot be read from it.
    return [...new Set([...held, ...newest])].filter((field) => !field.startsWith('#')).slice(0, MAX_USED_KEYS)
  }

  /** Repeats no step whose answer was lost: the answers of the newest batch are kept. */
  async takeTokens(request: TokenRequest): Promise<TokensTaken> {
    const step = tokensStep(request)
    const { done, details } = await this.#board.submit(step)
    if (!done) throw refusalError(step.what, { why: 'limits' })
    const [taken, free] = details
    return { taken: Number(taken), ...(free === undefined || free === null ? {} : { until: Number(free) }) }
  }
}

function tokensStep({ key, revision, rate, costs }: TokenRequest): ScriptStep {
  const words = rate ? [rate.burst, rate.intervalMs, ...costs].map(String) : []
  return {
    arguments: ['tokens', fieldName(key), revision, words],
    what: `taking tokens of limit ${key}`,
    bytes: SMALL_STEP_BYTES + 20 * words.length,
  }
}

/** Returns the key of a field that {@link fieldName} has made of one; the field itself for another. */
function toKey(field: string): string {
  try {
    const [text]: unknown[] = JSON.parse(field)
    return typeof text === 'string' ? text : field
  } catch {
    return field
  }
}

/** Returns the rate of a field of `intervals`; undefined for a field that is missing or that no script writes. */
function parseRate(text: string): TokenRate | undefined {
  const [intervalMs = 0, burst = 0] = text.split(' ').map(Number)
  return intervalMs > 0 && burst > 0 ? { intervalMs, burst } : undefined
}
