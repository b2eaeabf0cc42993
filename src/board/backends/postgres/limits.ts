/** Reads and takes what is taken of limits: see `functions/limits.sql`. */
import { decodeText, encodeText } from '../../../postgres/index.ts'
import type { BackendLimits } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { type LimitUse, MAX_USED_KEYS, type TokenRequest, type TokensTaken } from '../../model/limits.ts'
import type { BoardWriter } from './commit/writer.ts'
import type { PostgresBoard } from './store/board.ts'

export class PostgresLimits implements BackendLimits {
  readonly #board: PostgresBoard
  readonly #writer: BoardWriter

  constructor(board: PostgresBoard, writer: BoardWriter) {
    this.#board = board
    this.#writer = writer
  }

  async revision(): Promise<number> {
    const text = 'SELECT limits FROM @.boards WHERE id = $1'
    const [row] = await this.#board.ask('reading the revision of the limits', text)
    return Number(row?.['limits'] ?? 0)
  }

  async use(keys?: readonly string[]): Promise<LimitUse[]> {
    // A row of limit_keys is deleted when no token is missing, also while jobs hold slots of the key.
    const text = `SELECT coalesce(k.key, s.key) AS key, k.arrival, k.spacing, k.burst, coalesce(s.taken, 0) AS taken
      FROM (SELECT key, arrival, spacing, burst FROM @.limit_keys
        WHERE board = $1 AND arrival > 0 AND ($2::text[] IS NULL OR key = ANY($2))) k
      FULL JOIN (SELECT key, pg_catalog.count(*) AS taken FROM @.slots
        WHERE board = $1 AND ($2::text[] IS NULL OR key = ANY($2)) GROUP BY key) s ON s.key = k.key
      ORDER BY taken DESC, arrival DESC NULLS LAST LIMIT $3`
    const values = [keys?.map(encodeText) ?? null, MAX_USED_KEYS]
    const rows = await this.#board.ask('reading the use of limits', text, values)
    return rows.map(({ key, arrival, spacing, burst, taken }) => {
      const arrivalMs = arrival === null ? undefined : Number(arrival)
      const rate = Number(spacing) > 0 ? { rate: { intervalMs: Number(spacing), burst: Number(burst) } } : {}
      return { key: decodeText(String(key)), slots: Number(taken), arrivalMs, ...rate }
    })
  }

  /** Takes tokens in one transaction. It is not repeated when its answer is lost. */
  async takeTokens({ key, revision, rate, costs }: TokenRequest): Promise<TokensTaken> {
    this.#board.assertOpen()
    const what = `taking tokens of limit ${key}`
    const values = [revision, encodeText(key), costs, rate?.burst ?? null, rate?.intervalMs ?? null]
    const { answer } = await this.#writer.tokens.send({ what, name: 'take_tokens', values })
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
