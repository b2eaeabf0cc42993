/**
 * Access by a token: in a link that sets a cookie, or in an `Authorization: Bearer` header. The token of a one-time link is used up by its first
 * use: a person who finds it later, in a history or a log, can do nothing with it.
 */
import { InvalidArgument } from '../../core/errors.ts'
import type { Access, Authenticator } from './access.ts'
import { derive, isSameSecret, newSecret } from './secrets.ts'

const MIN_TOKEN = 16

export type Granted = Omit<Access, 'who'> & { readonly who?: string }

/** Access with a token that stays the same: it can be used many times, and by programs. @throws InvalidArgument for a short one */
export function tokenAccess(token: string, granted: Granted): Authenticator {
  if (typeof token !== 'string' || token.length < MIN_TOKEN)
    throw new InvalidArgument(`a token must have at least ${MIN_TOKEN} characters: openssl rand -hex 32`)
  const cookie = new Cookie(derive(token, 'name').slice(0, 8))
  const value = derive(token, 'cookie')
  const access: Access = { who: 'token', ...granted }
  return {
    authorize: (request) => {
      const bearer = /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]
      if (bearer !== undefined) return isSameSecret(bearer, token) ? access : undefined
      return cookie.values(request).some((one) => isSameSecret(one, value)) ? access : undefined
    },
    signIn: (request, mount) => {
      const given = tokenOf(request)
      return given !== undefined && isSameSecret(given, token) ? cookie.set(request, { value, mount }) : undefined
    },
    challenge: 'Bearer',
    advice: 'open the address with ?token=TOKEN, or send Authorization: Bearer TOKEN',
  }
}

export interface OneTimeLink extends Authenticator {
  /** The token of the link. */
  readonly token: string
}

/** Access by a link that works once. */
export function oneTimeLink(granted: Granted): OneTimeLink {
  const token = newSecret()
  const cookie = new Cookie(derive(token, 'name').slice(0, 8))
  const value = newSecret()
  let isUsed = false
  const access: Access = { who: 'local', ...granted }
  return {
    token,
    authorize: (request) => (cookie.values(request).some((one) => isSameSecret(one, value)) ? access : undefined),
    signIn: (request, mount) => {
      const given = tokenOf(request)
      if (given === undefined || !isSameSecret(given, token) || isUsed) return undefined
      isUsed = true
      return cookie.set(request, { value, mount })
    },
    advice: 'open the link that the server has printed at its start; it works once: restart the server for a new one',
  }
}

function tokenOf(request: Request): string | undefined {
  if (request.method !== 'GET') return undefined
  return new URL(request.url).searchParams.get('token') ?? undefined
}

/** A cookie of one dashboard: its name keeps it apart from those of dashboards on other ports, to which browsers send it, too. */
class Cookie {
  readonly #name: string

  constructor(id: string) {
    this.#name = `jobboard_${id.replace(/[^A-Za-z0-9]/g, 'x')}`
  }

  values(request: Request): string[] {
    const cookies = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
    const names = [`__Host-${this.#name}=`, `${this.#name}=`]
    return names.flatMap((name) => cookies.flatMap((pair) => (pair.startsWith(name) ? [pair.slice(name.length)] : [])))
  }

  /** Answers with the cookie, and sends the browser to the same page without the token. */
  set(request: Request, { value, mount }: { readonly value: string; readonly mount: string }): Response {
    const url = new URL(request.url)
    // A proxy that ends TLS says so. A client that invents the header only makes its own cookie stricter.
    const forwarded = request.headers.get('x-forwarded-proto')?.split(',')[0]?.trim().toLowerCase()
    const isSecure = url.protocol === 'https:' || forwarded === 'https'
    // Browsers accept a cookie with the prefix __Host- only from this host, only with TLS, and only with the path /.
    const [name, path, secure] = isSecure ? [`__Host-${this.#name}`, '/', '; Secure'] : [this.#name, mount, '']
    const cookie = `${name}=${value}; Path=${path}; HttpOnly; SameSite=Strict${secure}`
    // Relative, because a proxy may have another path: the last segment of this one is its own.
    const location = `./${url.pathname.slice(url.pathname.lastIndexOf('/') + 1)}`
    return new Response(null, { status: 303, headers: { Location: location, 'Set-Cookie': cookie } })
  }
}
