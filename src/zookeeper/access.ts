/** Translates ZooKeeper's errors about identities and ACLs into errors of boards and logbooks. */
import { AccessDenied, InvalidArgument, WritesRefused } from '../core/errors.ts'
import { AuthFailed, InvalidAcl, NoAuth, QuotaExceeded } from './protocol/errors.ts'

/** The kind of thing that is stored on ZooKeeper under a path of its own. */
export type Tenant = 'board' | 'logbooks'

const AUTH_ADVICE = 'zookeeper://user:password@host/path, or the option auth'
const CREDENTIALS_ADVICE: Readonly<Record<Tenant, string>> = {
  board: `open the board with credentials that its ACL names: ${AUTH_ADVICE}`,
  logbooks: `open the logbooks with credentials that their ACL names: ${AUTH_ADVICE}`,
}

/** Returns the error for a failed opening, which adds whether this client gave credentials. */
export function toOpenError(
  error: unknown,
  { identified = false }: { readonly identified?: boolean | undefined },
): unknown {
  if (!(error instanceof AccessDenied && error.cause instanceof NoAuth)) return error
  const why = identified
    ? 'its ACL does not name the given identity: a wrong user or password?'
    : 'no credentials were given'
  return new AccessDenied(`${error.message} (${why})`, { cause: error.cause })
}

/**
 * Returns an AccessDenied that says what to do about it.
 *
 * @param options.instead what to do where credentials would not help
 */
export function accessDeniedError(
  what: string,
  options: ErrorOptions & { tenant: Tenant; instead?: string },
): AccessDenied {
  const { tenant, instead = CREDENTIALS_ADVICE[tenant], ...rest } = options
  return new AccessDenied(`${what}; ${instead}`, rest)
}

/** Returns the error unchanged, or, for errors about identities and ACLs, an error that says what to do. */
export function toTenantError<T>(
  tenant: Tenant,
  what: string,
  error: T,
): T | AccessDenied | InvalidArgument | WritesRefused {
  if (error instanceof QuotaExceeded)
    return new WritesRefused(
      `${what}: a quota of ZooKeeper leaves no room: raise it (setquota), or remove data below its path`,
      {
        cause: error,
      },
    )
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
