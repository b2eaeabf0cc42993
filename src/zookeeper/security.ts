/** Credentials, TLS and ACL of the client of a board or of logbooks, from a URI and from options. */
import { readFile } from 'node:fs/promises'
import { InvalidArgument } from '../core/errors.ts'
import { assertOptions, defined } from '../core/options.ts'
import type { ResourceUri } from '../core/uri.ts'
import type { Tenant } from './access.ts'
import type { AuthInfo } from './connection/identities.ts'
import { checkSasl, type SaslCredentials } from './connection/sasl.ts'
import { TLS_OPTIONS, type TlsOptions } from './connection/socket.ts'
import { ACL, type Acl } from './protocol/acl.ts'
import type { WantedAcl } from './tree-acl.ts'

/** Security options of `openBoard` and `openPersistence`. */
export interface SecurityOptions {
  /**
   * Identities that are added on every connection before any other request: `{ scheme: 'digest', auth: 'user:password'
   * }`. The same as `zookeeper://user:password@host/path`.
   */
  readonly auth?: readonly AuthInfo[]
  /** SASL DIGEST-MD5 credentials. The same as `zookeeper://user:password@host/path?login=sasl`. */
  readonly sasl?: SaslCredentials
  /** TLS options, as for `zookeepers://`. The certificates and the key are texts in PEM. */
  readonly tls?: TlsOptions
  /**
   * ACL of the whole board, or of all logbooks. The tree keeps its ACL, so an existing tree does not need this option;
   * a tree with another ACL is not opened. The default for a new tree: its creator alone if `auth` or `sasl` are given,
   * otherwise open to all.
   */
  readonly acl?: readonly Acl[]
}

/** Credentials, ACL and TLS from a URI and options. */
export interface Security extends WantedAcl {
  readonly auth?: readonly AuthInfo[]
  readonly sasl?: SaslCredentials
  readonly tls?: TlsOptions
}

const OPENERS_BY_TENANT: Readonly<Record<Tenant, string>> = { board: 'openBoard', logbooks: 'openPersistence' }

/** Parameters about security that a URI may have. */
export const SECURITY_PARAMETERS = ['login', 'acl', 'ca', 'cert', 'key', 'passphrase', 'servername'] as const
const TLS_FILES = ['ca', 'cert', 'key'] as const
const TLS_TEXTS = ['passphrase', 'servername'] as const

const ACLS_BY_NAME: Readonly<Record<string, readonly Acl[]>> = { creator: ACL.creatorAll, open: ACL.open }

/**
 * Combines the URI and the options.
 *
 * @throws InvalidArgument for invalid values, or a file that cannot be read
 */
export async function parseSecurity(uri: ResourceUri, tenant: Tenant, options: SecurityOptions): Promise<Security> {
  assertSecurity(options, OPENERS_BY_TENANT[tenant])
  const { auth, sasl } = parseIdentities(uri, options)
  const acl = options.acl ?? parseAcl(uri, OPENERS_BY_TENANT[tenant])
  const tls = await parseTls(uri, options)
  return {
    ...defined({ auth: auth.length > 0 ? auth : undefined, sasl, tls, acl }),
    identified: auth.length > 0 || sasl !== undefined,
  }
}

/**
 * Checks the options' shapes: an ignored malformed option would leave everything open to all.
 *
 * @throws InvalidArgument, without secrets
 */
function assertSecurity({ auth = [], sasl, tls, acl }: SecurityOptions, opener: string): void {
  const example = "auth must be a list of identities, such as [{ scheme: 'digest', auth: 'user:password' }]"
  if (!Array.isArray(auth)) throw new InvalidArgument(`${opener}: ${example}`)
  for (const identity of auth) {
    const { scheme, auth: secret }: Partial<AuthInfo> = Object(identity)
    if (typeof scheme !== 'string' || !(typeof secret === 'string' || secret instanceof Uint8Array))
      throw new InvalidArgument(`${opener}: ${example}`)
    if (scheme === 'digest' && !/^[^:]+:./s.test(Buffer.from(secret).toString()))
      throw new InvalidArgument(`${opener}: auth of the scheme digest must be 'user:password', with a colon`)
  }
  if (sasl !== undefined) checkSasl(sasl)
  if (tls !== undefined) assertOptions(tls, TLS_OPTIONS, `${opener}: tls`)
  if (acl === undefined || Array.isArray(acl)) return
  const lists =
    "such as ACL.creatorAll of jobboard/zookeeper; the word 'creator' or 'open' is for the URI, ?acl=creator"
  throw new InvalidArgument(`${opener}: acl must be a list of entries, ${lists}`)
}

function parseIdentities(
  { credentials, parameters, printable }: ResourceUri,
  { auth = [], sasl }: SecurityOptions,
): { readonly auth: readonly AuthInfo[]; readonly sasl: SaslCredentials | undefined } {
  const login = parameters.get('login')
  if (login !== undefined && login !== 'digest' && login !== 'sasl')
    throw new InvalidArgument(`${printable}: login must be digest or sasl, got ${login}`)
  if (!credentials) {
    if (login === undefined) return { auth, sasl }
    throw new InvalidArgument(`${printable}: login needs credentials; write user:password@ before the hosts`)
  }
  const { user, password } = credentials
  // An empty password authenticates any process: most likely a variable was not set.
  if (user === '' || !password)
    throw new InvalidArgument(`${printable}: the part before the hosts must be user:password@`)
  if (login !== 'sasl') return { auth: [{ scheme: 'digest', auth: `${user}:${password}` }, ...auth], sasl }
  if (sasl) throw new InvalidArgument(`${printable}: SASL takes one user; leave out the option sasl, or the URI's`)
  return { auth, sasl: { username: user, password } }
}

function parseAcl({ parameters, printable }: ResourceUri, opener: string): readonly Acl[] | undefined {
  const name = parameters.get('acl')
  if (name === undefined) return undefined
  const acl = Object.hasOwn(ACLS_BY_NAME, name) ? ACLS_BY_NAME[name] : undefined
  if (acl) return acl
  throw new InvalidArgument(`${printable}: acl must be creator or open; give any other ACL as an option of ${opener}`)
}

async function parseTls(uri: ResourceUri, options: SecurityOptions): Promise<TlsOptions | undefined> {
  const { scheme, parameters, printable } = uri
  const named = [...TLS_FILES, ...TLS_TEXTS].filter((name) => parameters.has(name))
  if (scheme !== 'zookeepers' && !options.tls) {
    if (named.length === 0) return undefined
    throw new InvalidArgument(
      `${printable}: ${named[0]} needs TLS; write zookeepers:// and name the servers' secure port`,
    )
  }
  const texts = TLS_TEXTS.filter((name) => parameters.has(name)).map((name) => [name, parameters.get(name)])
  const files = TLS_FILES.filter((name) => parameters.has(name)).map(async (name) => [name, await readPem(uri, name)])
  const settings = Object.entries(options.tls ?? {}).filter(([, value]) => value !== undefined)
  return Object.fromEntries([...texts, ...(await Promise.all(files)), ...settings])
}

async function readPem({ parameters, printable }: ResourceUri, name: (typeof TLS_FILES)[number]): Promise<string> {
  const what = `${printable}: ${name} must name a file in PEM`
  const text = await readFile(parameters.get(name) ?? '', 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new InvalidArgument(`${what} that can be read: ${cause.code}`, { cause })
  })
  // OpenSSL ignores text that is not a certificate, and then trusts no server.
  if (text.includes('-----BEGIN ')) return text
  throw new InvalidArgument(`${what}, which begins with -----BEGIN`)
}
