/** The addresses of clients. */
import { isIP } from 'node:net'

/** Returns the address without a prefix or a zone that a socket adds: a socket that listens on `::` shows IPv4 peers as `::ffff:127.0.0.1`. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
}

/** Returns whether this is an address of this machine that no other machine reaches. */
export function isLoopback(host: string): boolean {
  const name = plainAddress(host.toLowerCase())
  return name === 'localhost' || name === '::1' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name)
}

/**
 * Returns the key under which a client is counted: its IPv4 address, or the /64 network of its IPv6 address, because a client can use all
 * addresses of its network.
 */
export function toClientKey(address: string | undefined): string | undefined {
  if (address === undefined) return undefined
  const plain = plainAddress(address)
  if (isIP(plain) !== 6 || plain === '::1') return plain
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length)
  const whole = [...groups, ...Array.from({ length: missing }, () => '0'), ...(tail ? tail.split(':') : [])]
  return `${whole.slice(0, 4).join(':')}::/64`
}
