/** Access to Postgres, for boards and for logbooks. */
export { decodeText, encodeText } from '../core/texts.ts'
export { advisoryClass, advisoryKey } from './advisory-keys.ts'
export { arrayLiteral, escapedArrayLiteral, escapeElement } from './array-literal.ts'
export { type Notification, PostgresConnection, PostgresPool, type Row, type SqlDriver } from './connection.ts'
export { PostgresError, toPostgresError } from './errors.ts'
export { type ConcurrentIndex, finishIndexes } from './indexes.ts'
export {
  type PostgresLocation,
  parsePostgresLocation,
  postgresPlace,
  quoteIdentifier,
  schemaName,
} from './location.ts'
export { areMigrated, type Migrations, migrate } from './migrations.ts'
export { foreignOwner, foreignOwnerAdvice, warnOfForeignOwner } from './schema-owner.ts'
