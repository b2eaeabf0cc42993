/** A driver whose errors are those of logbooks. */
import { JobboardError, StorageFailure } from '../../core/errors.ts'
import { postgresError, type SqlDriver } from '../../postgres/index.ts'

/** @param uri for the errors, without a password */
export function storageDriver(driver: SqlDriver, uri: string): SqlDriver {
  return {
    query: async (text, values) => {
      try {
        return await driver.query(text, values)
      } catch (thrown) {
        if (thrown instanceof JobboardError) throw thrown
        const error = postgresError(thrown)
        const { message, retryable, sqlState } = error
        const state = sqlState === undefined ? '' : ` (SQLSTATE ${sqlState})`
        throw new StorageFailure(`the logbooks at ${uri}: ${message}${state}`, { cause: error, retryable })
      }
    },
  }
}
