/** What ZooKeeper says of who we are and what we may, in the words of boards and logbooks. */
import { AccessDenied, InvalidArgument } from '../core/errors.ts'
import { AuthFailed, InvalidAcl, NoAuth } from './protocol/errors.ts'

/** What is kept on ZooKeeper, at a path of its own. */
export type Tenant = 'board' | 'logbooks'

const AUTH_ADVICE = 'zookeeper://user:password@host/path, or the option auth'
const CREDENTIALS_ADVICE: Readonly<Record<Tenant, string>> = {
  board: `open the board as somebody whom its ACL names: ${AUTH_ADVICE}`,
  logbooks: `open the logbooks as somebody whom their ACL names: ${AUTH_ADVICE}`,
}

/** What an opening says: there it is known whether this client said who it is. */
export function toOpenError(
  error: unknown,
  { identified = false }: { readonly identified?: boolean | undefined },
): unknown {
  if (!(error instanceof AccessDenied && error.cause instanceof NoAuth)) return error
  const given = identified
    ? 'those that were given are of nobody whom it names: a wrong user or password?'
    : 'no credentials were given'
  return new AccessDenied(`${error.message} (${given})`, { cause: error.cause })
}

/**
 * The error for those who may not, which says what to do about it.
 *
 * @param options.instead what to do, where that is not to give credentials
 */
export function accessDeniedError(
  what: string,
  options: ErrorOptions & { tenant: Tenant; instead?: string },
): AccessDenied {
  const { tenant, instead = CREDENTIALS_ADVICE[tenant], ...rest } = options
  return new AccessDenied(`${what}; ${instead}`, rest)
}

/** The same error, or the one that says what to do about who we are. */
export function toTenantError<T>(tenant: Tenant, what: string, error: T): T | AccessDenied | InvalidArgument {
  if (error instanceof NoAuth) return accessDeniedError(`${what}: ${error.message}`, { tenant, cause: error })
  if (error instanceof AuthFailed) {
    const instead = `correct ${tenant === 'board' ? 'its' : 'their'} credentials`
    return accessDeniedError(`${what}: ${error.message}`, { tenant, cause: error, instead })
  }
  if (error instanceof InvalidAcl) {
    const how = 'it must not be empty, and one for its creator takes credentials (auth, sasl, or a client certificate)'
    return new InvalidArgument(`${what}: the servers do not accept the ACL; ${how}`, { cause: error })
  }
  return error
}
