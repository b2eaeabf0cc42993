/**
 * The protection of changes from other sites (CSRF). There is no token that a proxy or a second server could lose: a change is a POST of JSON,
 * which forms cannot send, and the browser says where it comes from.
 */
import { Refusal } from '../problem.ts'
import { hostName } from './hosts.ts'

/** Refuses a change that another site may have caused. @throws Refusal */
export function assertSameOrigin(request: Request): void {
  const { headers } = request
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== 'application/json')
    throw new Refusal('NOT_JSON', 'a change is a POST with Content-Type: application/json')
  const site = headers.get('sec-fetch-site')
  if (site !== null) {
    if (site === 'same-origin') return
    throw new Refusal('FORBIDDEN', `a change must come from the dashboard's own pages, not ${site}`)
  }
  // Browsers omit the header for http:// addresses of other machines, and old browsers do not know it.
  const origin = headers.get('origin')
  if (origin !== null) {
    if (isOwnOrigin(origin, headers.get('host') ?? new URL(request.url).host)) return
    throw new Refusal(
      'FORBIDDEN',
      `a change must come from the dashboard's own pages, not from ${origin.slice(0, 200)}`,
    )
  }
  if (headers.has('authorization')) return
  throw new Refusal(
    'FORBIDDEN',
    'a change needs Sec-Fetch-Site or Origin, as browsers send them, or an Authorization header, as programs send it',
  )
}

/**
 * Refuses a read of the API that another site has caused. Its page could not see the answer, but it would cost the board as much. @throws Refusal
 */
export function assertNotCrossSite({ headers }: Request): void {
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none')
    throw new Refusal(
      'FORBIDDEN',
      `the API answers the dashboard's own pages and programs, not pages that are ${site.slice(0, 50)}`,
    )
}

/** Compares hosts and ports. The scheme is not compared: behind a proxy with TLS this server sees http. */
function isOwnOrigin(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false
  const { protocol, port, hostname } = new URL(origin)
  if (protocol !== 'http:' && protocol !== 'https:') return false
  const own = /:(\d{1,5})$/.exec(host.replace(/^\[.*\]/, ''))?.[1] ?? ''
  const isPort = port === own || (port === '' && (own === '80' || own === '443'))
  return hostname.toLowerCase().replace(/\.$/, '') === hostName(host) && isPort
}
