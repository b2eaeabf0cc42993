/**
 * Parses the location of a board or of logbooks from a URI: hosts, path, times, credentials and ACL.
 *
 *     zookeeper://user:password@host:2181,host2:2181/path?sessionTimeout=10s&tick=2s&chroot=/apps&login=sasl&acl=creator
 *     zookeepers://host:2281/path?ca=ca.pem&cert=client.pem&key=client.key
 */
import { InvalidArgument } from '../core/errors.ts'
import { defined } from '../core/options.ts'
import type { Duration } from '../core/time.ts'
import { assertParameters, type ResourceUri, readDurationParameter } from '../core/uri.ts'
import type { Tenant } from './access.ts'
import { MAX_INT32 } from './protocol/jute.ts'
import { parseSecurity, SECURITY_PARAMETERS, type Security, type SecurityOptions } from './security.ts'

/** Location that a `zookeeper:` URI names: servers, path, times, credentials. */
export interface ZooKeeperLocation {
  /** Hosts, followed by the chroot. */
  readonly hosts: string
  /** Path without a trailing slash. */
  readonly path: string
  readonly sessionTimeout?: Duration
  readonly tick?: Duration
  /** Largest request that is sent: the servers' `jute.maxbuffer`. */
  readonly maxRequestBytes?: number
  readonly security: Security
}

const LOCATION_PARAMETERS = ['sessionTimeout', 'tick', 'chroot', 'maxRequestBytes', ...SECURITY_PARAMETERS] as const

/**
 * Checks the names of a URI's parameters.
 *
 * @param further the parameters of a board or of logbooks, besides the parameters of every location
 * @throws InvalidArgument for an unknown parameter
 */
export function assertLocationParameters(uri: ResourceUri, further: readonly string[]): void {
  // The parameter of an earlier release: its users learn what to do.
  if (uri.parameters.has('client'))
    throw new InvalidArgument(`${uri.printable}: the C client is not supported any more; remove the parameter client`)
  assertParameters(uri, [...further, ...LOCATION_PARAMETERS])
}

/**
 * Parses a URI. Opens nothing but the files of certificates.
 *
 * @throws InvalidArgument when the URI names no hosts, or has invalid parts
 */
export async function parseZooKeeperLocation(
  uri: ResourceUri,
  place: { readonly tenant: Tenant; readonly defaultPath: string },
  options: SecurityOptions,
): Promise<ZooKeeperLocation> {
  const { authority, path } = uri
  if (authority === '') throw new InvalidArgument(`${uri.printable}: no hosts; write zookeeper://127.0.0.1:2181/path`)
  return {
    hosts: `${authority}${parseChroot(uri)}`,
    path: path === '' || path === '/' ? place.defaultPath : path.replace(/\/$/, ''),
    ...parseDurations(uri),
    ...parseMaxRequestBytes(uri),
    security: await parseSecurity(uri, place.tenant, options),
  }
}

/** Session timeout of clients that are not given another. */
const DEFAULT_SESSION_TIMEOUT_MS = 10_000

/** Returns the chroot with a leading and without a trailing slash, however it was written. */
function parseChroot({ parameters }: ResourceUri): string {
  const chroot = (parameters.get('chroot') ?? '').replace(/^\/+|\/+$/g, '')
  return chroot === '' ? '' : `/${chroot}`
}

/** The smallest limit: requests that read lists of some hundred paths must fit. */
const MIN_REQUEST_BYTES = 64 * 1_024

function parseMaxRequestBytes({ parameters, printable }: ResourceUri): { maxRequestBytes?: number } {
  const text = parameters.get('maxRequestBytes')
  if (text === undefined) return {}
  const maxRequestBytes = /^\d{1,10}$/.test(text) ? Number(text) : 0
  if (maxRequestBytes >= MIN_REQUEST_BYTES && maxRequestBytes <= MAX_INT32) return { maxRequestBytes }
  throw new InvalidArgument(
    `${printable}: maxRequestBytes must be a number of bytes from ${MIN_REQUEST_BYTES} to ${MAX_INT32}, the jute.maxbuffer of all servers`,
  )
}

function parseDurations(uri: ResourceUri): { sessionTimeout?: Duration; tick?: Duration } {
  const { printable } = uri
  const read = (name: string) => {
    const ms = readDurationParameter(uri, name)
    if (ms !== 0) return ms
    throw new InvalidArgument(`${printable}: ${name} must be longer than 0`)
  }
  const [sessionTimeout, tick] = [read('sessionTimeout'), read('tick')]
  if (tick !== undefined && tick > (sessionTimeout ?? DEFAULT_SESSION_TIMEOUT_MS)) {
    const most = sessionTimeout === undefined ? ` (${DEFAULT_SESSION_TIMEOUT_MS} ms by default)` : ''
    throw new InvalidArgument(
      `${printable}: tick must not be longer than sessionTimeout${most}; servers grant two ticks at least`,
    )
  }
  return defined({ sessionTimeout, tick })
}
