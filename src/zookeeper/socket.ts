/** Opens the socket to a server: plain TCP, or TLS from the first byte on. */
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContextOptions } from 'node:tls'
import { InvalidArgument } from '../core/errors.ts'
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

/** @throws InvalidArgument for what is no certificate, no key, or not the key of the certificate */
export function checkTls(tls: TlsOptions): void {
  try {
    createSecureContext(contextOf(tls))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new InvalidArgument(`tls: ca, cert, key and passphrase cannot be used as they are: ${why}`, { cause })
  }
}

/** @param ready called once, when bytes may be written */
export function openSocket(server: Server, tls: TlsOptions | undefined, ready: () => void): Socket {
  const where = { host: server.address, port: server.port }
  if (!tls) return connectPlain({ ...where, noDelay: true }, ready)
  // Without a server name Node checks the certificate against the address.
  const servername = tls.servername ?? (isIP(server.host) === 0 ? server.host : '')
  return connectTls({ ...where, ...contextOf(tls), servername }, ready).setNoDelay(true)
}

/** With a list of authorities as Node wants it. */
function contextOf({ ca, ...rest }: TlsOptions): SecureContextOptions {
  if (ca === undefined) return rest
  return { ...rest, ca: typeof ca === 'string' || Buffer.isBuffer(ca) ? [ca] : [...ca] }
}
