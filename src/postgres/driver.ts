/**
 * The interface of a Postgres driver. A `Pool` of the `pg` package implements it; any other driver takes one line.
 *
 * Each call may use another connection and commits by itself, so that it works behind a transaction pooler. No statement is
 * prepared by name, and no setting of a session is relied on.
 *
 * @example const driver: SqlDriver = new pg.Pool({ connectionString })
 */
export interface SqlDriver {
  /**
   * Runs one statement with its parameters (`$1`, `$2`, …): text, numbers, bytes, null, and arrays of these.
   *
   * Columns come back as `pg` gives them: `bytea` as bytes, `timestamptz` as Date, `jsonb` as what it says, `bigint` as
   * text or a number.
   *
   * @throws an error with `code`, the SQLSTATE, where the server has refused it
   */
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Row[] }>
}

export type Row = Readonly<Record<string, unknown>>
