/** Opens the socket to a server: plain TCP, or TLS from the first byte. */
import { X509Certificate } from 'node:crypto'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContextOptions } from 'node:tls'
import { InvalidArgument, messageOf } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import type { Server } from './hosts.ts'

/** Options of `tls.connect`. The server's certificate is verified, including that it is for the configured host. */
export interface TlsOptions {
  /** Certificate authorities that may sign the server's certificate, in PEM; Node's own list by default. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[]
  /** Certificate of this client, in PEM, where the server asks for one. */
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  /** Passphrase of `key`. */
  readonly passphrase?: string
  /** Name that the server's certificate must have; the configured host by default. */
  readonly servername?: string
  /**
   * Whether the server's certificate is verified. False accepts any certificate, so that any host can intercept the
   * traffic. True by default.
   */
  readonly rejectUnauthorized?: boolean
}

export const TLS_OPTIONS: KnownOptions<TlsOptions> = {
  ca: true,
  cert: true,
  key: true,
  passphrase: true,
  servername: true,
  rejectUnauthorized: true,
}

/**
 * Checks the options.
 *
 * @throws InvalidArgument for an invalid certificate or key, or a key that does not belong to the certificate
 */
export function checkTls(tls: TlsOptions): void {
  assertOptions(tls, TLS_OPTIONS, 'tls')
  const { ca, cert, key } = tls
  if (ca !== undefined) checkAuthorities(ca)
  if (cert !== undefined && key === undefined) throw new InvalidArgument('tls: cert needs its key')
  if (key !== undefined && cert === undefined) throw new InvalidArgument('tls: key needs its cert')
  for (const [name, pem] of Object.entries({ cert, key })) if (pem !== undefined) assertContent(pem, name)
  try {
    createSecureContext(toTlsContext(tls))
  } catch (cause) {
    const why = messageOf(cause).replaceAll(/\s+/g, ' ')
    throw new InvalidArgument(`tls: ca, cert, key and passphrase cannot be used as they are: ${why}`, { cause })
  }
}

const CERTIFICATE_PATTERN =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g

/** Checks authorities: OpenSSL treats what it cannot read as an empty list, and then trusts no server. */
function checkAuthorities(ca: NonNullable<TlsOptions['ca']>): void {
  const all = toList(ca)
  if (all.length === 0)
    throw new InvalidArgument('tls: ca must not be empty; leave it out to use the authorities that Node trusts')
  for (const pem of all) {
    assertContent(pem, 'ca')
    const certificates = pem.toString().match(CERTIFICATE_PATTERN) ?? []
    if (!certificates.some(isCertificate)) throw new InvalidArgument('tls: ca has no readable certificate')
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== undefined
  } catch {
    return false
  }
}

function assertContent(pem: unknown, name: string): void {
  if (typeof pem !== 'string' && !Buffer.isBuffer(pem))
    throw new InvalidArgument(`tls: ${name} must be a PEM text, or its bytes`)
  if (pem.includes('-----BEGIN ')) return
  const isName = typeof pem === 'string' && /^[^\n]+\.\w+$/.test(pem)
  const instead = isName ? `give the file's content: await readFile(${JSON.stringify(pem)})` : 'it has no -----BEGIN'
  throw new InvalidArgument(`tls: ${name} is not a PEM; ${instead}`)
}

/**
 * Opens a socket.
 *
 * @param ready called once, when bytes may be written
 */
export function openSocket(server: Server, tls: TlsOptions | undefined, ready: () => void): Socket {
  const where = { host: server.address, port: server.port }
  if (!tls) return connectPlain({ ...where, noDelay: true }, ready)
  // Without a server name Node checks the certificate against the address.
  const servername = tls.servername ?? (isIP(server.host) === 0 ? server.host : '')
  return connectTls({ ...where, ...toTlsContext(tls), servername }, ready).setNoDelay(true)
}

/** Converts the authorities to the form that Node needs. */
function toTlsContext({ ca, ...rest }: TlsOptions): SecureContextOptions {
  if (ca === undefined) return rest
  return { ...rest, ca: toList(ca) }
}

function toList(ca: NonNullable<TlsOptions['ca']>): (string | Buffer)[] {
  if (typeof ca === 'string' || Buffer.isBuffer(ca)) return [ca]
  if (Array.isArray(ca)) return [...ca]
  throw new InvalidArgument('tls: ca must be a PEM text, or its bytes, or a list of these')
}
