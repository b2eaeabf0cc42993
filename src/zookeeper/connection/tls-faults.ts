/**
 * Explains TLS failures, so that administrators know what to change.
 *
 * A server that does not use TLS where the client does, or the reverse, sends nothing and closes the connection. So the
 * other protocol is tried once: a server that understands it has shown its protocol.
 */
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { onAbort } from '../../core/async/abort.ts'
import { ConnectionFault } from './faults.ts'
import type { Server } from './hosts.ts'

/** Error of OpenSSL: its reason, beside a message of several lines of numbers. */
interface TlsError extends NodeJS.ErrnoException {
  readonly reason?: string
}

/** Explains an error of a TLS socket before it was ready; undefined where the error is the network's. */
export function explainTlsError(error: TlsError): ConnectionFault | undefined {
  const { code = '', syscall, reason, message } = error
  if (syscall !== undefined || code === 'ECONNRESET') return undefined
  const toFault = (text: string) => new ConnectionFault('tls', text, { cause: error })
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const what = `the server's certificate is for another host (${message})`
    return toFault(`${what}; name the host as its certificate does, or that name as servername`)
  }
  if (code.includes('_ALERT_')) {
    const what = `the server refuses to speak TLS with this client (${reason})`
    return toFault(`${what}; it may want a certificate of this client, or another one: cert and key`)
  }
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return toFault(`TLS fails (${reason ?? message})`)
  return toFault(`the server's certificate is not trusted (${message}); give the authority that signed it as ca`)
}

/** Returns the fault for a server that closed the connection because it uses another protocol. */
export function protocolMismatchAdvice(options: { readonly tls: boolean }): ConnectionFault {
  return options.tls
    ? new ConnectionFault('tls', 'it does not speak TLS on this port; use its secure port, or turn TLS off')
    : new ConnectionFault('tls', 'it speaks TLS on this port, and this client does not: give tls, or zookeepers://')
}

/** Command that any server answers, even a server that disallows it; it opens no session. */
const FOUR_LETTER_PROBE = 'srvr'

/**
 * Checks whether a server uses TLS where this client does not, or the reverse, with one more connection. Never throws.
 *
 * @param options.tls whether this client uses TLS
 * @param options.signal cancels the check; the result is false
 */
export function speaksOtherProtocol(
  server: Server,
  options: { readonly tls: boolean; readonly timeout: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const where = { host: server.address, port: server.port }
  return new Promise((resolve) => {
    const socket: Socket = options.tls
      ? connectPlain(where, () => socket.write(FOUR_LETTER_PROBE))
      : // Nothing is sent on it, and received data are ignored.
        connectTls({ ...where, rejectUnauthorized: false }, () => answered(true))
    const answered = (otherwise: boolean) => {
      resolve(otherwise)
      leave()
      socket.destroy()
    }
    const leave = onAbort(options.signal, () => answered(false))
    socket.setTimeout(options.timeout, () => answered(false))
    socket.on('data', () => answered(true))
    // An alert is a message of TLS.
    socket.on('error', ({ code = '' }: NodeJS.ErrnoException) => answered(code.includes('_ALERT_')))
    socket.on('close', () => answered(false))
  })
}
