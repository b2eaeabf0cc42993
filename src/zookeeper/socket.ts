/** Opens the socket to a server: plain TCP, or TLS from the first byte on. */
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
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

/** @param ready called once, when bytes may be written */
export function openSocket(server: Server, tls: TlsOptions | undefined, ready: () => void): Socket {
  const where = { host: server.address, port: server.port }
  if (!tls) return connectPlain({ ...where, noDelay: true }, ready)
  const { ca, servername = isIP(server.host) === 0 ? server.host : '', ...rest } = tls
  // Without a server name Node checks the certificate against the address.
  const socket = connectTls({ ...where, ...rest, servername, ...(ca === undefined ? {} : { ca: listOf(ca) }) }, ready)
  return socket.setNoDelay(true)
}

function listOf(ca: NonNullable<TlsOptions['ca']>): (string | Buffer)[] {
  return typeof ca === 'string' || Buffer.isBuffer(ca) ? [ca] : [...ca]
}
