/**
 * Parses the URI of a Redis board:
 *
 * - `redis://[user:password@]host:6379/DB`, `rediss://` with TLS
 * - `redis+unix:/run/redis/redis.sock?db=0`: a Unix socket of this machine
 * - `redis+sentinel://[user:password@]host:26379,host2:26379/NAME/DB`: the master with the NAME that the sentinels know
 * - `redis+cluster://[user:password@]host:6379,host2:6379`
 *
 * each with `?prefix=taskflow&ttl=10s&timeout=3s&window=10000`, and with TLS (`rediss:`, `rediss+sentinel:`, `rediss+cluster:`) `ca`, `cert`, `key`,
 * `passphrase` and `servername`.
 */
import { readFile } from 'node:fs/promises'
import { InvalidArgument } from '../../../../core/errors.ts'
import { toMilliseconds } from '../../../../core/time.ts'
import { assertParameters, type ResourceUri, readDurationParameter } from '../../../../core/uri.ts'
import { type WindowSize, windowSizeOf } from '../../window-size.ts'

export interface RedisHost {
  readonly host: string
  readonly port: number
}

/** TLS options of Node's `tls.connect`; certificates and keys are in PEM format. */
export interface RedisTls {
  readonly ca?: string | Buffer | readonly (string | Buffer)[]
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly passphrase?: string
  readonly servername?: string
  readonly rejectUnauthorized?: boolean
}

export interface RedisLocation extends WindowSize {
  /** The URI for messages, without the password. */
  readonly uri: string
  readonly kind: 'server' | 'sentinel' | 'cluster'
  readonly hosts: readonly [RedisHost, ...RedisHost[]]
  /** The path of the Unix socket that is used in place of a host; undefined for TCP. */
  readonly socket: string | undefined
  /** The name of the master that the sentinels know. */
  readonly master: string
  readonly db: number
  readonly credentials: ResourceUri['credentials']
  readonly tls: RedisTls | undefined
  readonly prefix: string
  /** The time after which a silent owner is dead, in milliseconds. */
  readonly ttl: number
  /** The time limit for an answer of the server, in milliseconds. */
  readonly timeout: number
}

const DEFAULT_PREFIX = 'taskflow'
const DEFAULT_SESSION_TTL = '10s'
/** The smallest TTL. Keys are renewed after a third of it: with less, a short stall of the process would lose its claims. */
const MIN_TTL_MS = 1_000

/** The smallest time limit of an answer. */
const MIN_TIMEOUT_MS = 100

const TLS_FILES = ['ca', 'cert', 'key'] as const
const TLS_TEXTS = ['passphrase', 'servername'] as const

/** Parses the URI and reads the files of TLS. @throws InvalidArgument */
export async function parseRedisLocation(
  uri: ResourceUri,
  options: { readonly tls?: RedisTls } = {},
): Promise<RedisLocation> {
  const own = isSocket(uri) ? ['db'] : []
  assertParameters(uri, ['prefix', 'ttl', 'timeout', 'window', 'windowBytes', ...own, ...TLS_FILES, ...TLS_TEXTS])
  const kind = parseKind(uri)
  const { printable, parameters, credentials } = uri
  const socket = isSocket(uri) ? parseSocket(uri) : undefined
  const { master, db } = socket === undefined ? parsePath(uri, kind) : { master: '', db: parseDb(uri) }
  const ttl = parseTtl(uri)
  return {
    uri: printable,
    kind,
    hosts: socket === undefined ? parseHosts(uri, kind) : [{ host: 'localhost', port: 6_379 }],
    socket,
    master,
    db,
    credentials,
    tls: await parseTls(uri, options),
    prefix: parameters.get('prefix') ?? DEFAULT_PREFIX,
    ttl,
    timeout: parseTimeout(uri, { ttl }),
    ...windowSizeOf(uri),
  }
}

function parseKind({ scheme }: ResourceUri): RedisLocation['kind'] {
  if (scheme.endsWith('+sentinel')) return 'sentinel'
  return scheme.endsWith('+cluster') ? 'cluster' : 'server'
}

function isSocket({ scheme }: ResourceUri): boolean {
  return scheme === 'redis+unix'
}

function parseSocket({ authority, path, printable }: ResourceUri): string {
  if (authority === '' && path.startsWith('/') && path !== '/') return decodeURIComponent(path)
  throw new InvalidArgument(
    `${printable}: redis+unix: takes the path of a socket; write redis+unix:/run/redis/redis.sock?db=0`,
  )
}

function parseDb({ parameters, printable }: ResourceUri): number {
  const text = parameters.get('db') ?? '0'
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw new InvalidArgument(`${printable}: db must be the number of a database, such as db=0`)
}

function parseHosts({ authority, printable }: ResourceUri, kind: RedisLocation['kind']): [RedisHost, ...RedisHost[]] {
  const port = kind === 'sentinel' ? 26_379 : 6_379
  const [first, ...others] = authority.split(',').map((text) => parseHost(text, { printable, port }))
  if (!first) throw new InvalidArgument(`${printable}: no host; write redis://127.0.0.1:6379/0`)
  if (others.length > 0 && kind === 'server')
    throw new InvalidArgument(
      `${printable}: redis:// takes one host; write redis+sentinel:// or redis+cluster://, or name one host`,
    )
  return [first, ...others]
}

function parseHost(text: string, { printable, port }: { printable: string; port: number }): RedisHost {
  const found = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(text)
  const host = found?.[1] ?? found?.[2]
  const ownPort = Number(found?.[3] ?? port)
  if (host !== undefined && ownPort > 0 && ownPort < 65_536) return { host, port: ownPort }
  throw new InvalidArgument(`${printable}: ${JSON.stringify(text)} is not a host; write redis://127.0.0.1:6379/0`)
}

/** Parses the path: for sentinels it begins with the name of the master; a cluster has only one database. */
function parsePath({ path, printable }: ResourceUri, kind: RedisLocation['kind']): { master: string; db: number } {
  const parts = path.split('/').filter((part) => part !== '')
  const master = kind === 'sentinel' ? parts.shift() : ''
  if (master === undefined)
    throw new InvalidArgument(
      `${printable}: the name of the master is missing; write redis+sentinel://127.0.0.1:26379/NAME/0`,
    )
  const [db = '0', ...more] = parts
  if (more.length > 0 || !/^\d{1,6}$/.test(db) || (kind === 'cluster' && db !== '0')) {
    const can =
      kind === 'cluster' ? 'a cluster has one database, so omit the path' : 'the database must be a number, such as /0'
    throw new InvalidArgument(`${printable}: ${can}; for several boards in one database, give each a prefix`)
  }
  return { master, db: Number(db) }
}

function parseTtl(uri: ResourceUri): number {
  const ttl = readDurationParameter(uri, 'ttl') ?? toMilliseconds(DEFAULT_SESSION_TTL, 'ttl')
  if (ttl >= MIN_TTL_MS) return Math.round(ttl)
  throw new InvalidArgument(`${uri.printable}: ttl must be at least ${MIN_TTL_MS} ms`)
}

/** Parses the time limit of answers. By default it leaves time for another connection before the TTL is over. */
function parseTimeout(uri: ResourceUri, { ttl }: { readonly ttl: number }): number {
  const timeout = readDurationParameter(uri, 'timeout') ?? Math.max(500, ttl / 3)
  if (timeout >= MIN_TIMEOUT_MS && timeout < ttl) return Math.round(timeout)
  throw new InvalidArgument(
    `${uri.printable}: timeout must be at least ${MIN_TIMEOUT_MS} ms, and shorter than ttl (${ttl} ms)`,
  )
}

async function parseTls(uri: ResourceUri, options: { readonly tls?: RedisTls }): Promise<RedisTls | undefined> {
  const { scheme, parameters, printable } = uri
  const named = [...TLS_FILES, ...TLS_TEXTS].filter((name) => parameters.has(name))
  if (!scheme.startsWith('rediss') && !options.tls) {
    if (named.length === 0) return undefined
    throw new InvalidArgument(`${printable}: ${named[0]} is a TLS parameter; write rediss://`)
  }
  const texts = TLS_TEXTS.filter((name) => parameters.has(name)).map((name) => [name, parameters.get(name)])
  const files = TLS_FILES.filter((name) => parameters.has(name)).map(async (name) => [name, await readPem(uri, name)])
  return { ...Object.fromEntries([...texts, ...(await Promise.all(files))]), ...options.tls }
}

async function readPem({ parameters, printable }: ResourceUri, name: (typeof TLS_FILES)[number]): Promise<string> {
  const what = `${printable}: ${name} must name a PEM file`
  const text = await readFile(parameters.get(name) ?? '', 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new InvalidArgument(`${what} that can be read: ${cause.code}`, { cause })
  })
  if (text.includes('-----BEGIN ')) return text
  throw new InvalidArgument(`${what}, which begins with -----BEGIN`)
}
