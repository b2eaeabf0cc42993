/** What jobboard needs of Postgres, for boards and for logbooks. */
export { advisoryClass, advisoryKey } from './advisory-keys.ts'
export { type Notification, PostgresConnection } from './connection.ts'
export type { Row, SqlDriver } from './driver.ts'
export { PostgresError, postgresError } from './errors.ts'
export { areMigrated, type Migrations, migrate } from './migrations.ts'
export { type PostgresPlace, postgresPlace, quoted, schemaName } from './place.ts'
export { PostgresPool } from './pool.ts'
export { fromStorable, storable } from './text.ts'
