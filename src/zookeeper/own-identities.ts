/** Which entries of an ACL are this client's own: by what it was given, and where that does not tell, by what the servers say. */
import type { AuthInfo } from './connection/identities.ts'
import type { SaslCredentials } from './connection/sasl.ts'
import type { TlsOptions } from './connection/socket.ts'
import type { ZooKeeperDriver } from './driver.ts'
import type { Acl, Identity } from './protocol/acl.ts'
import { digestId } from './protocol/acl.ts'
import { Unimplemented } from './protocol/errors.ts'

/** Who the client says it is. */
export interface ClientCredentials {
  readonly auth?: readonly AuthInfo[]
  readonly sasl?: SaslCredentials
  readonly tls?: TlsOptions
}

/**
 * Returns the entries that name this client and nobody else. A certificate's identity is made by the servers, so they are
 * asked for it; servers before 3.7 cannot be, and there a single certificate in the ACL is taken for ours if we show one.
 */
export async function findOwnEntries(
  acl: readonly Acl[],
  { given, client }: { readonly given: ClientCredentials; readonly client: Pick<ZooKeeperDriver, 'whoAmI'> },
): Promise<ReadonlySet<Acl>> {
  const ours = given.auth?.flatMap(toDigestIdentity) ?? []
  if (given.sasl) ours.push({ scheme: 'sasl', id: given.sasl.username })
  const isGiven = (entry: Acl) => ours.some((each) => isIdentity(each, entry))
  const rest = acl.filter((entry) => !isGiven(entry) && !LOCALLY_KNOWN_SCHEMES.has(entry.scheme))
  const known = rest.length > 0 ? await askServer(client) : []
  const certificates = acl.filter(({ scheme }) => scheme === 'x509')
  const isKnown = (entry: Acl) => {
    if (known) return known.some((each) => isIdentity(each, entry))
    return entry.scheme === 'x509' && certificates.length === 1 && given.tls?.cert !== undefined
  }
  return new Set(acl.filter((entry) => isGiven(entry) || (rest.includes(entry) && isKnown(entry))))
}

/** Of these the servers know no more than was given; `ip` is nobody's alone. */
const LOCALLY_KNOWN_SCHEMES: ReadonlySet<string> = new Set(['world', 'ip', 'digest', 'sasl'])

/** Whether the entry is of this identity. Servers show an `x` instead of a hash to those without ADMIN. */
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

/** Undefined where the servers cannot say. */
async function askServer(client: Pick<ZooKeeperDriver, 'whoAmI'>): Promise<readonly Identity[] | undefined> {
  return client.whoAmI?.().catch((error: unknown) => {
    if (error instanceof Unimplemented) return undefined
    throw error
  })
}

function toUserName({ id }: Identity): string {
  return id.slice(0, id.lastIndexOf(':'))
}
