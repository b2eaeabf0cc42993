/** A driver whose errors are those of logbooks. */
import { JobboardError, StorageFailure } from '../../core/errors.ts'
import { PostgresError, type SqlDriver, toPostgresError } from '../../postgres/index.ts'

/**
 * Returns whether another try may succeed without a change of the configuration: an open should not wait because of a
 * misspelt address.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof StorageFailure)) return false
  return error.cause instanceof PostgresError ? error.cause.retryable : error.retryable
}

/** Wraps a driver. @param uri the URI for errors, without a password */
export function storageDriver(driver: SqlDriver, uri: string): SqlDriver {
  return {
    query: async (text, values) => {
      try {
        return await driver.query(text, values)
      } catch (thrown) {
        if (thrown instanceof JobboardError) throw thrown
        const error = toPostgresError(thrown)
        const { message, sqlState } = error
        // An error that the request did not cause is not the job's fault, and may be repaired while the job waits.
        const retryable = error.fault === 'place'
        const state = sqlState === undefined ? '' : ` (SQLSTATE ${sqlState})`
        throw new StorageFailure(`the logbooks at ${uri}: ${message}${state}`, { cause: error, retryable })
      }
    },
  }
}
