/** Access without a sign-in, for the programs and browsers of this machine only. */
import { Refusal } from '../problem.ts'
import type { Access, Authenticator } from './access.ts'
import { isLoopback } from './address.ts'

/** Headers that proxies add: the peer is then the proxy, and the client may be on any machine. */
const FORWARDED =
  /^(via|(.*-)?forwarded(-.*)?|(.*-)?(client|real|connecting|remote|user)-?(ip(v6)?|addr)|x-(envoy|original)-.*)$/

/**
 * Returns access for requests of this machine. The address of the socket decides, because a client can write any value into `Host`. A
 * request that a proxy has passed on is refused, because its address is the address of the proxy.
 */
export function localAccess(access: Access): Authenticator {
  return {
    authorize: (request, { address }) => {
      if (address === undefined)
        throw refusal(
          'the address of the client is not known: pass it, as in fetch(request, { address }), or set authorize',
        )
      if (!isLoopback(address))
        throw refusal('without a sign-in, the dashboard answers this machine only: set authorize')
      const forwarded = [...request.headers.keys()].find((name) => FORWARDED.test(name))
      if (forwarded !== undefined)
        throw refusal(
          `without a sign-in, the dashboard answers no proxy, which the header ${forwarded} shows: set authorize`,
        )
      return access
    },
  }
}

function refusal(message: string): Refusal {
  return new Refusal('FORBIDDEN', `${message}; with jobboard ui, give --auth link, --token, --basic or --trust-header`)
}
