/** What jobboard needs of Postgres, for logbooks now. */
export type { Row, SqlDriver } from './driver.ts'
export { PostgresError, postgresError } from './errors.ts'
export { areMigrated, type Migrations, migrate } from './migrations.ts'
export { type PostgresPlace, postgresPlace, quoted, schemaName } from './place.ts'
export { PostgresPool } from './pool.ts'
export { fromStorable, storable } from './text.ts'
