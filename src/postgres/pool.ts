/** A pool of connections to one database, which are opened on demand and replaced when they are lost. */
import type { Pool } from 'pg'
import type { Row, SqlDriver } from './connection.ts'
import { loadPg } from './connection.ts'
import { type PostgresLocation, poolSettings } from './place.ts'

export class PostgresPool implements SqlDriver {
  readonly #location: PostgresLocation
  readonly #underWay = new Set<Promise<unknown>>()
  #pool: Promise<Pool> | undefined

  constructor(place: PostgresLocation) {
    this.#location = place
  }

  /** Connects where no connection is free; a lost one is made anew by the next call. Errors are the driver's own. */
  async query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Row[] }> {
    this.#pool ??= createPool(this.#location)
    const answer = this.#pool.then((pool) => pool.query(text, values))
    const settled = answer.catch(() => undefined).finally(() => this.#underWay.delete(settled))
    this.#underWay.add(settled)
    return answer
  }

  /** Waits for open requests, then closes. The pool alone would never answer requests that wait for a connection. */
  async close(): Promise<void> {
    await Promise.all(this.#underWay)
    await this.#pool?.then((pool) => pool.end()).catch(() => undefined)
  }
}

async function createPool(place: PostgresLocation): Promise<Pool> {
  const [{ default: pg }, settings] = await Promise.all([loadPg(place), poolSettings(place)])
  const pool = new pg.Pool(settings)
  // The loss of an idle connection is not an error: the next call opens another.
  pool.on('error', () => undefined)
  return pool
}
