/** Opens the socket to a server: plain TCP, or TLS from the first byte on. */
import { X509Certificate } from 'node:crypto'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContextOptions } from 'node:tls'
import { InvalidArgument } from '../../core/errors.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import type { Server } from './hosts.ts'

/** As `tls.connect` takes them. The server's certificate is checked, and that it is for the host that was named. */
export interface TlsOptions {
  /** Who may have signed the server's certificate, in PEM; Node's own list by default. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[]
  /** This client's certificate, in PEM, where the server asks for one. */
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  /** Of `key`. */
  readonly passphrase?: string
  /** The name that must be in the server's certificate; the host as it was named by default. */
  readonly servername?: string
  /** False takes any certificate from anybody: who listens in then cannot be known. True by default. */
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

/** @throws InvalidArgument for what is no certificate, no key, or not the key of the certificate */
export function checkTls(tls: TlsOptions): void {
  assertOptions(tls, TLS_OPTIONS, 'tls')
  const { ca, cert, key } = tls
  if (ca !== undefined) checkAuthorities(ca)
  if (cert !== undefined && key === undefined) throw new InvalidArgument('tls: a cert is of no use without its key')
  if (key !== undefined && cert === undefined) throw new InvalidArgument('tls: a key is of no use without its cert')
  for (const [name, pem] of Object.entries({ cert, key })) if (pem !== undefined) assertContent(pem, name)
  try {
    createSecureContext(toTlsContext(tls))
  } catch (cause) {
    const why = (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, ' ')
    throw new InvalidArgument(`tls: ca, cert, key and passphrase cannot be used as they are: ${why}`, { cause })
  }
}

const CERTIFICATE_PATTERN =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g

/** OpenSSL takes whatever it cannot read for an empty list, and trusts nobody then. */
function checkAuthorities(ca: NonNullable<TlsOptions['ca']>): void {
  const all = toList(ca)
  if (all.length === 0) throw new InvalidArgument('tls: ca names nobody; leave it out for those whom Node trusts')
  for (const pem of all) {
    assertContent(pem, 'ca')
    const certificates = pem.toString().match(CERTIFICATE_PATTERN) ?? []
    if (!certificates.some(isCertificate)) throw new InvalidArgument('tls: ca has no certificate that can be read')
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
  if (typeof pem !== 'string' && !Buffer.isBuffer(pem)) throw new InvalidArgument(`tls: ${name} is a PEM, or its bytes`)
  if (pem.includes('-----BEGIN ')) return
  const isName = typeof pem === 'string' && /^[^\n]+\.\w+$/.test(pem)
  const instead = isName ? `give what is in the file: await readFile(${JSON.stringify(pem)})` : 'it has no -----BEGIN'
  throw new InvalidArgument(`tls: ${name} is no PEM; ${instead}`)
}

/** @param ready called once, when bytes may be written */
export function openSocket(server: Server, tls: TlsOptions | undefined, ready: () => void): Socket {
  const where = { host: server.address, port: server.port }
  if (!tls) return connectPlain({ ...where, noDelay: true }, ready)
  // Without a server name Node checks the certificate against the address.
  const servername = tls.servername ?? (isIP(server.host) === 0 ? server.host : '')
  return connectTls({ ...where, ...toTlsContext(tls), servername }, ready).setNoDelay(true)
}

/** With a list of authorities as Node wants it. */
function toTlsContext({ ca, ...rest }: TlsOptions): SecureContextOptions {
  if (ca === undefined) return rest
  return { ...rest, ca: toList(ca) }
}

function toList(ca: NonNullable<TlsOptions['ca']>): (string | Buffer)[] {
  if (typeof ca === 'string' || Buffer.isBuffer(ca)) return [ca]
  if (Array.isArray(ca)) return [...ca]
  throw new InvalidArgument('tls: ca is a PEM, or its bytes, or a list of these')
}
