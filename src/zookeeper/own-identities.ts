/** Finds the entries of an ACL that name this client: by its credentials, and otherwise by asking the servers. */
import type { ZooKeeper } from './client.ts'
import type { AuthInfo } from './connection/identities.ts'
import type { SaslCredentials } from './connection/sasl.ts'
import type { TlsOptions } from './connection/socket.ts'
import type { Acl, Identity } from './protocol/acl.ts'
import { digestId } from './protocol/acl.ts'
import { Unimplemented } from './protocol/errors.ts'

/** Credentials of a client. */
export interface ClientCredentials {
  readonly auth?: readonly AuthInfo[]
  readonly sasl?: SaslCredentials
  readonly tls?: TlsOptions
}

/**
 * Returns the entries that name this client alone. The servers compute a certificate's identity, so they are asked for
 * it. Servers before 3.7 cannot be asked: a single certificate in the ACL is then taken for this client's if it has
 * one.
 */
export async function findOwnEntries(
  acl: readonly Acl[],
  { credentials, client }: { readonly credentials: ClientCredentials; readonly client: Pick<ZooKeeper, 'whoAmI'> },
): Promise<ReadonlySet<Acl>> {
  const ours = credentials.auth?.flatMap(toDigestIdentity) ?? []
  if (credentials.sasl) ours.push({ scheme: 'sasl', id: credentials.sasl.username })
  const isGiven = (entry: Acl) => ours.some((each) => isIdentity(each, entry))
  const rest = acl.filter((entry) => !isGiven(entry) && !LOCALLY_KNOWN_SCHEMES.has(entry.scheme))
  const known = rest.length > 0 ? await askServer(client) : []
  const certificates = acl.filter(({ scheme }) => scheme === 'x509')
  const isKnown = (entry: Acl) => {
    if (known) return known.some((each) => isIdentity(each, entry))
    return entry.scheme === 'x509' && certificates.length === 1 && credentials.tls?.cert !== undefined
  }
  return new Set(acl.filter((entry) => isGiven(entry) || (rest.includes(entry) && isKnown(entry))))
}

/** Schemes about which the servers know no more than the client; an `ip` does not identify one client. */
const LOCALLY_KNOWN_SCHEMES: ReadonlySet<string> = new Set(['world', 'ip', 'digest', 'sasl'])

/** Returns whether the entry is of this identity. Servers show an `x` instead of a hash to clients without ADMIN. */
export function isIdentity(identity: Identity, entry: Identity): boolean {
  if (identity.scheme !== entry.scheme) return false
  if (identity.id === entry.id) return true
  return entry.scheme === 'digest' && entry.id.endsWith(':x') && toUserName(identity) === toUserName(entry)
}

function toDigestIdentity({ scheme, auth }: AuthInfo): Identity[] {
  const text = Buffer.from(auth).toString()
  const colon = text.indexOf(':')
  return scheme === 'digest' && colon > 0 ? [digestId(text.slice(0, colon), text.slice(colon + 1))] : []
}

/** Asks the servers for this client's identities; undefined where they cannot answer. */
async function askServer(client: Pick<ZooKeeper, 'whoAmI'>): Promise<readonly Identity[] | undefined> {
  return client.whoAmI().catch((error: unknown) => {
    if (error instanceof Unimplemented) return undefined
    throw error
  })
}

function toUserName({ id }: Identity): string {
  return id.slice(0, id.lastIndexOf(':'))
}
