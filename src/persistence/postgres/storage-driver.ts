/** A driver whose errors are those of logbooks. */
import { JobboardError, StorageFailure } from '../../core/errors.ts'
import { PostgresError, type SqlDriver, toPostgresError } from '../../postgres/index.ts'

/** Whether another try may go well with nothing put right: who opens should not wait for what they have misspelt. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof StorageFailure)) return false
  return error.cause instanceof PostgresError ? error.cause.retryable : error.retryable
}

/** @param uri for the errors, without a password */
export function storageDriver(driver: SqlDriver, uri: string): SqlDriver {
  return {
    query: async (text, values) => {
      try {
        return await driver.query(text, values)
      } catch (thrown) {
        if (thrown instanceof JobboardError) throw thrown
        const error = toPostgresError(thrown)
        const { message, sqlState } = error
        // What is not the fault of what was asked is no job's fault, and may be put right while the job waits.
        const retryable = error.fault === 'place'
        const state = sqlState === undefined ? '' : ` (SQLSTATE ${sqlState})`
        throw new StorageFailure(`the logbooks at ${uri}: ${message}${state}`, { cause: error, retryable })
      }
    },
  }
}
