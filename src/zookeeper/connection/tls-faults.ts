/**
 * Where TLS fails, said so that whoever set it up knows what to change.
 *
 * Of a port that speaks the other language (TLS where none is spoken, or none where TLS is) nothing is heard: the server
 * hangs up. So the other language is tried once; a server that understands it has given itself away.
 */
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { onAbort } from '../../core/async/abort.ts'
import { ConnectionFault } from './faults.ts'
import type { Server } from './hosts.ts'

/** What OpenSSL says beside its message, which is several lines of numbers. */
interface TlsError extends NodeJS.ErrnoException {
  readonly reason?: string
}

/** An explanation of an error that a TLS socket told of before it was of use; undefined where it is the network's. */
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
  return toFault(`the server's certificate is not trusted (${message}); name whoever vouches for it as ca`)
}

/** What to say of a server that hung up on a client which speaks the wrong language. */
export function protocolMismatchAdvice(options: { readonly tls: boolean }): ConnectionFault {
  return options.tls
    ? new ConnectionFault('tls', 'it does not speak TLS on this port; name its secure port, or do without TLS')
    : new ConnectionFault('tls', 'it speaks TLS on this port, and this client does not: give tls, or zookeepers://')
}

/** A question that any server answers, also one that allows none; it opens no session. */
const FOUR_LETTER_PROBE = 'srvr'

/**
 * Whether a server speaks TLS where we did not, or does not where we did. Never throws; one connection more.
 *
 * @param options.tls what we did
 * @param options.signal gives it up: false
 */
export function speaksOtherProtocol(
  server: Server,
  options: { readonly tls: boolean; readonly timeout: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const where = { host: server.address, port: server.port }
  return new Promise((resolve) => {
    const socket: Socket = options.tls
      ? connectPlain(where, () => socket.write(FOUR_LETTER_PROBE))
      : // Nothing is sent on it, and nothing believed of what is heard.
        connectTls({ ...where, rejectUnauthorized: false }, () => answered(true))
    const answered = (otherwise: boolean) => {
      resolve(otherwise)
      leave()
      socket.destroy()
    }
    const leave = onAbort(options.signal, () => answered(false))
    socket.setTimeout(options.timeout, () => answered(false))
    socket.on('data', () => answered(true))
    // An alert is TLS, too.
    socket.on('error', ({ code = '' }: NodeJS.ErrnoException) => answered(code.includes('_ALERT_')))
    socket.on('close', () => answered(false))
  })
}
