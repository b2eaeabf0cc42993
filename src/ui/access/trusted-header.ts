/** Access by a header that a proxy sets after it has authenticated the person. Only proxies on a list are believed. */
import { BlockList, isIP } from 'node:net'
import { InvalidArgument } from '../../core/errors.ts'
import type { Access, Authenticator } from './access.ts'
import { plainAddress } from './address.ts'

export interface TrustedHeaderOptions extends Omit<Access, 'who'> {
  /** The header with the name of the person, as in `X-Forwarded-User`. */
  readonly header: string
  /** The addresses of the proxies: `10.0.0.7`, `10.0.0.0/8`, `::1`. */
  readonly proxies: readonly string[]
}

/** Returns access by a header of a trusted proxy. @throws InvalidArgument */
export function trustedHeader({ header, proxies, level, values }: TrustedHeaderOptions): Authenticator {
  if (!/^[A-Za-z0-9-]{1,100}$/.test(header)) throw new InvalidArgument(`'${header}' is not the name of a header`)
  if (proxies.length === 0)
    throw new InvalidArgument('a trusted header needs the addresses of the proxies that set it, as in 10.0.0.0/8')
  const trusted = toBlockList(proxies)
  return {
    authorize: (request, { address }) => {
      if (address === undefined || !contains(trusted, address)) return undefined
      const who = request.headers.get(header)
      // Several headers of this name are joined with a comma: one of them may be the client's own.
      if (!who || who.includes(',') || who.trim() === '') return undefined
      return { who: who.trim(), level, ...(values === undefined ? {} : { values }) }
    },
    advice: `the proxy must set the header ${header}, and its address must be on the list of trusted proxies`,
  }
}

/** Parses the addresses and networks of the proxies. @throws InvalidArgument */
function toBlockList(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of texts) {
    const [address = '', prefix, ...more] = text.split('/')
    const family = isIP(address)
    const bits = prefix === undefined ? (family === 6 ? 128 : 32) : Number(prefix)
    const isBits = prefix === undefined || (/^\d{1,3}$/.test(prefix) && bits <= (family === 6 ? 128 : 32))
    if (family === 0 || more.length > 0 || !isBits)
      throw new InvalidArgument(`'${text}' is neither an address nor a network such as 10.0.0.0/8`)
    list.addSubnet(address, bits, family === 6 ? 'ipv6' : 'ipv4')
  }
  return list
}

function contains(list: BlockList, address: string): boolean {
  const plain = plainAddress(address)
  const family = isIP(plain)
  return family !== 0 && list.check(plain, family === 6 ? 'ipv6' : 'ipv4')
}
