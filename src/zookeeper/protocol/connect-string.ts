/** Parses connect strings, `host[:port][,host[:port]…][/chroot]`, in the form that every ZooKeeper client uses. */
import { InvalidArgument } from '../../core/errors.ts'
import { checkPath } from './path.ts'

/** Address of a server. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** Parts of `host:2181,host2:2181/chroot`. */
export interface ConnectString {
  readonly endpoints: readonly Endpoint[]
  /** The chroot; `''` where there is none. */
  readonly chroot: string
}

const DEFAULT_PORT = 2181
const ENDPOINT = /^(?:\[(?<ipv6>[0-9a-fA-F:.%]+)\]|(?<host>[^\s:[\]@/]+))(?::(?<port>\d{1,5}))?$/

/**
 * Reads `host:2181,host2:2181/chroot`; the port is 2181 where there is none.
 *
 * @throws InvalidArgument naming the part that cannot be read
 */
export function parseConnectString(text: string): ConnectString {
  if (typeof text !== 'string')
    throw new InvalidArgument(`hosts must be a text such as host:2181,host:2181/chroot, got ${typeof text}`)
  if (!text.includes('@')) return parseParts(text)
  try {
    return parseParts(text)
  } catch {
    // The text around an @ may be a part of a password, so the message shows none of it.
    const where = 'give credentials in auth or sasl, as in auth: [{ scheme, auth }]'
    throw new InvalidArgument(`hosts must be host:2181,host:2181/chroot and contains an @; ${where}`)
  }
}

function parseParts(text: string): ConnectString {
  const slash = text.indexOf('/')
  const hosts = slash < 0 ? text : text.slice(0, slash)
  const chroot = slash < 0 || slash === text.length - 1 ? '' : text.slice(slash)
  if (chroot !== '') checkPath(chroot, { what: 'chroot' })
  if (/[,\s]/.test(chroot))
    throw new InvalidArgument(
      `chroot ${JSON.stringify(chroot)} has a comma or a blank; the chroot is written once, after the last host: host:2181,host2:2181/app`,
    )
  return { endpoints: hosts.split(',').map((part) => parseEndpoint(part.trim())), chroot }
}

function parseEndpoint(text: string): Endpoint {
  const found = ENDPOINT.exec(text)?.groups
  const host = found?.['ipv6'] ?? found?.['host']
  const port = Number(found?.['port'] ?? DEFAULT_PORT)
  if (host === undefined || port < 1 || port > 65_535) {
    throw new InvalidArgument(
      `${JSON.stringify(text)} is not the address of a ZooKeeper server; write host:port, such as 127.0.0.1:2181`,
    )
  }
  return { host, port }
}

export function formatEndpoint({ host, port }: Endpoint): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
