import { decodeText, encodeText, type SqlDriver } from '../../../postgres/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { type LimitUse, MAX_USED_KEYS, type TokenRequest, type TokensTaken } from '../../model/limits.ts'
import { translateErrors } from './errors.ts'
import type { FunctionCaller } from './function-caller.ts'

export interface LimitRowsOptions {
  readonly driver: SqlDriver
  /** Sends only requests for tokens: jobs that are settled do not wait behind them. */
  readonly requests: FunctionCaller
  readonly schema: string
  readonly board: number
}

export class LimitRows {
  readonly #options: LimitRowsOptions

  constructor(options: LimitRowsOptions) {
    this.#options = options
  }

  /** Returns the revision of the board's limits. */
  async revision(): Promise<number> {
    const { driver, schema, board } = this.#options
    const { rows } = await translateErrors('reading the revision of the limits', () =>
      driver.query(`SELECT limits FROM ${schema}.boards WHERE id = $1`, [board]),
    )
    return Number(rows[0]?.['limits'] ?? 0)
  }

  /** Returns the slots and tokens that are taken of these keys; without keys, those of at most MAX_USED_KEYS keys. */
  async use(keys: readonly string[] | undefined): Promise<LimitUse[]> {
    const { driver, schema, board } = this.#options
    // A row of limit_keys is deleted when no token is missing, also while jobs hold slots of the key.
    const text = `SELECT coalesce(k.key, s.key) AS key, k.arrival, k.spacing, k.burst, coalesce(s.taken, 0) AS taken
      FROM (SELECT key, arrival, spacing, burst FROM ${schema}.limit_keys
        WHERE board = $1 AND arrival > 0 AND ($2::text[] IS NULL OR key = ANY($2))) k
      FULL JOIN (SELECT key, pg_catalog.count(*) AS taken FROM ${schema}.slots
        WHERE board = $1 AND ($2::text[] IS NULL OR key = ANY($2)) GROUP BY key) s ON s.key = k.key
      ORDER BY taken DESC, arrival DESC NULLS LAST LIMIT $3`
    const { rows } = await translateErrors('reading the use of limits', () =>
      driver.query(text, [board, keys?.map(encodeText) ?? null, MAX_USED_KEYS]),
    )
    return rows.map(({ key, arrival, spacing, burst, taken }) => {
      const arrivalMs = arrival === null ? undefined : Number(arrival)
      const rate = Number(spacing) > 0 ? { rate: { intervalMs: Number(spacing), burst: Number(burst) } } : {}
      return { key: decodeText(String(key)), slots: Number(taken), arrivalMs, ...rate }
    })
  }

  /** Takes tokens in one transaction. It is not repeated when its answer is lost. @throws LimitsChanged */
  async take({ key, revision, rate, costs }: TokenRequest): Promise<TokensTaken> {
    const { requests, schema, board } = this.#options
    const what = `taking tokens of limit ${key}`
    const values = [board, revision, encodeText(key), costs, rate?.burst ?? null, rate?.intervalMs ?? null]
    const { answer } = await requests.send({ what, call: `${schema}.take_tokens`, values })
    const { limits, taken = 0, until } = answer as TokensAnswer
    if (limits) throw refusalError(what, { why: 'limits' })
    return { taken, ...(typeof until === 'number' ? { until } : {}) }
  }
}

/** The answer of the function `take_tokens`. */
interface TokensAnswer {
  /** Whether the limits have another revision, so that nothing was taken. */
  readonly limits?: true
  readonly taken?: number
  readonly until?: number | null
}
