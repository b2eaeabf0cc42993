/** The slots and tokens of a board that claims, and calls outside of claims, have taken. */
import { decodeText, encodeText } from '../../../core/texts.ts'
import type { BackendLimits } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import {
  type ClaimLimits,
  isSameRate,
  type LimitUse,
  limitReachedError,
  MAX_USED_KEYS,
  type TakenTokens,
  type TokenRate,
  type TokenRequest,
  type TokensTaken,
  takeTokens,
  takeTokensInOrder,
  toArrivalAt,
} from '../../model/limits.ts'
import type { SqliteBoard } from './life/open-board.ts'
import type { BoardContext } from './store/change-log.ts'

const NOTHING_TAKEN: readonly { readonly key: string; readonly arrivalMs: number }[] = []

export class LimitSteps {
  readonly #context: BoardContext

  constructor(context: BoardContext) {
    this.#context = context
  }

  /** The revision of the limits of the board. */
  get revision(): number {
    const { db, board } = this.#context
    return Number(db.get('SELECT limits FROM boards WHERE id = ?', board)?.['limits'] ?? 0)
  }

  noteChange(): void {
    const { db, board } = this.#context
    db.run('UPDATE boards SET limits = limits + 1 WHERE id = ?', board)
  }

  /**
   * Takes the slots and tokens of a claim. Before a refusal it only applies changed rates, which count from the first request by them.
   *
   * @param limits.current the revision of the limits of the board now
   * @returns the new arrival time of each key with a rate
   * @throws LimitsChanged, LimitReached
   */
  take(
    job: number,
    id: string,
    { revision, wants, current }: ClaimLimits & { readonly current: number },
  ): readonly { readonly key: string; readonly arrivalMs: number }[] {
    if (revision !== current) throw refusalError(id, { why: 'limits' })
    if (wants.length === 0) return NOTHING_TAKEN
    const { db, board, now } = this.#context
    const at = now()
    const before = wants.map(({ key, rate }) => (rate ? this.#applyRate(key, rate, at) : undefined))
    const arrivals = wants.flatMap(({ key, concurrency, rate }, index) => {
      if (concurrency !== undefined && this.#slots(key) >= concurrency)
        throw limitReachedError(id, { key, concurrency }, undefined)
      if (!rate) return []
      const taken = takeTokens(before[index], rate, at)
      if ('arrivalMs' in taken) return [{ key, arrivalMs: taken.arrivalMs, rate }]
      throw limitReachedError(id, { key }, taken.until)
    })
    for (const { key, concurrency } of wants)
      if (concurrency !== undefined)
        db.run('INSERT OR IGNORE INTO slots (board, key, job) VALUES (?, ?, ?)', board, encodeText(key), job)
    for (const { key, ...taken } of arrivals) this.#keep(key, taken)
    return arrivals.map(({ key, arrivalMs }) => ({ key, arrivalMs }))
  }

  /** Takes tokens for calls outside of claims. @throws LimitsChanged */
  takeTokens({ key, revision, rate, costs }: TokenRequest): TokensTaken {
    if (revision !== this.revision) throw refusalError(`limit ${key}`, { why: 'limits' })
    if (!rate) return { taken: 0 }
    const at = this.#context.now()
    const { arrivalMs, ...answer } = takeTokensInOrder(this.#applyRate(key, rate, at), { rate, costs }, at)
    if (answer.taken > 0 && arrivalMs !== undefined) this.#keep(key, { arrivalMs, rate })
    return answer
  }

  /** Returns what is taken of these keys; without keys, of at most {@link MAX_USED_KEYS}. */
  use(keys?: readonly string[]): LimitUse[] {
    return (keys ?? this.#usedKeys()).slice(0, MAX_USED_KEYS).flatMap((key) => {
      const slots = this.#slots(key)
      const { arrivalMs, rate } = this.#taken(key) ?? {}
      return slots > 0 || arrivalMs !== undefined ? [{ key, slots, arrivalMs, ...(rate ? { rate } : {}) }] : []
    })
  }

  #usedKeys(): readonly string[] {
    const { db, board } = this.#context
    const sql = 'SELECT key FROM slots WHERE board = ?1 UNION SELECT key FROM tokens WHERE board = ?1 LIMIT ?2'
    return db.all(sql, board, MAX_USED_KEYS).map(({ key }) => decodeText(String(key)))
  }

  /** Frees the slots that the job holds. */
  free(job: number): void {
    this.#context.db.run('DELETE FROM slots WHERE job = ?', job)
  }

  #slots(key: string): number {
    const { db, board } = this.#context
    const sql = 'SELECT count(*) AS count FROM slots WHERE board = ? AND key = ?'
    return Number(db.get(sql, board, encodeText(key))?.['count'])
  }

  #taken(key: string): (TakenTokens & { readonly rate: TokenRate }) | undefined {
    const { db, board } = this.#context
    const row = db.get(
      'SELECT arrival, interval, burst FROM tokens WHERE board = ? AND key = ?',
      board,
      encodeText(key),
    )
    if (!row) return undefined
    return {
      arrivalMs: Number(row['arrival']),
      rate: { intervalMs: Number(row['interval']), burst: Number(row['burst']) },
    }
  }

  /** Returns the arrival time of the key at this rate, and keeps it if the tokens were taken by another one. */
  #applyRate(key: string, rate: TokenRate, at: number): number | undefined {
    const taken = this.#taken(key)
    if (!taken) return undefined
    const arrivalMs = toArrivalAt(taken, rate, at)
    if (!isSameRate(taken.rate, rate)) this.#keep(key, { arrivalMs, rate })
    return arrivalMs
  }

  #keep(key: string, { arrivalMs, rate }: { readonly arrivalMs: number; readonly rate: TokenRate }): void {
    const { db, board } = this.#context
    const sql = 'INSERT OR REPLACE INTO tokens (board, key, arrival, interval, burst) VALUES (?, ?, ?, ?, ?)'
    db.run(sql, board, encodeText(key), arrivalMs, rate.intervalMs, rate.burst)
  }
}

export class SqliteLimits implements BackendLimits {
  readonly #board: SqliteBoard<{ readonly limits: LimitSteps }>

  constructor(board: SqliteBoard<{ readonly limits: LimitSteps }>) {
    this.#board = board
  }

  async revision(): Promise<number> {
    return this.#board.read(({ limits }) => limits.revision)
  }

  async use(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    return this.#board.read(({ limits }) => limits.use(keys))
  }

  async takeTokens(request: TokenRequest): Promise<TokensTaken> {
    return this.#board.step(({ limits }) => limits.takeTokens(request))
  }
}
