/**
 * `zookeeper://host:2181,host2:2181/path?sessionTimeout=10s&tick=2s&chroot=/apps&encoding=json`, or `&client=native`;
 * `zookeepers:` is TLS.
 */
import { InvalidArgument, UnsupportedCapability } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { type Duration, milliseconds } from '../../core/time.ts'
import { assertParameters, type ResourceUri } from '../../core/uri.ts'
import { type AuthInfo, NativeZooKeeper } from '../../zookeeper/index.ts'
import type { Backend } from '../backend.ts'
import { ZooKeeperBackend } from './backend.ts'
import { DEFAULT_PATH, Layout } from './layout.ts'
import { SECURITY_PARAMETERS, type SecurityOptions, securityOf } from './security.ts'
import { StepwiseBackend } from './stepwise/backend.ts'

export type { SecurityOptions } from './security.ts'

interface Options extends SecurityOptions {
  readonly log?: Logger
  readonly create?: boolean
}

/** @throws InvalidArgument when the URI names no hosts, a path that cannot be a board, or files that cannot be read */
export async function zooKeeperBackend(uri: ResourceUri, options: Options): Promise<Backend> {
  assertParameters(uri, ['sessionTimeout', 'tick', 'chroot', 'encoding', 'client', ...SECURITY_PARAMETERS])
  if (uri.authority === '')
    throw new InvalidArgument(`${uri.printable}: no hosts; write zookeeper://127.0.0.1:2181/path`)
  const path = uri.path === '' || uri.path === '/' ? DEFAULT_PATH : uri.path.replace(/\/$/, '')
  const encoding = uri.parameters.get('encoding')
  if (encoding !== undefined && encoding !== 'msgpack' && encoding !== 'json')
    throw new InvalidArgument(
      `${uri.printable}: encoding is msgpack, or json for a board that is shared with TaskFlow; it cannot be ${encoding}`,
    )
  const board = {
    uri: uri.printable,
    layout: new Layout(path),
    ...(options.create === undefined ? {} : { create: options.create }),
  }
  const security = await securityOf(uri, options)
  const client = {
    hosts: `${uri.authority}${chrootOf(uri)}`,
    ...durations(uri),
    ...(options.log ? { log: options.log } : {}),
  }
  if (!isNative(uri))
    return new ZooKeeperBackend({ ...board, ...client, ...security, ...(encoding === undefined ? {} : { encoding }) })
  const { identified = false, auth = [], ...rest } = security
  const zookeeper = new NativeZooKeeper({ ...client, ...rest, auth: auth.map(asText) })
  return new StepwiseBackend({ ...board, identified, zookeeper })
}

/** In milliseconds; of a board that is not told another. */
const DEFAULT_SESSION_TIMEOUT = 10_000

function isNative({ parameters, printable }: ResourceUri): boolean {
  const client = parameters.get('client')
  if (client === undefined) return false
  if (client !== 'native') {
    throw new InvalidArgument(
      `${printable}: client is native, for ZooKeeper's own C client, or left out; it cannot be ${client}`,
    )
  }
  if (parameters.get('encoding') === 'json') {
    const message = `${printable}: a board that is shared with TaskFlow takes transactions; leave client=native out`
    throw new UnsupportedCapability(message, { capability: 'shared' })
  }
  return true
}

/** The C client takes texts only. */
function asText({ scheme, auth }: AuthInfo): { readonly scheme: string; readonly auth: string } {
  if (typeof auth === 'string') return { scheme, auth }
  throw new UnsupportedCapability('client=native takes credentials as texts, not as bytes', { capability: 'auth' })
}

/** With a slash before it and none behind it, however it was written. */
function chrootOf({ parameters }: ResourceUri): string {
  const chroot = (parameters.get('chroot') ?? '').replace(/^\/+|\/+$/g, '')
  return chroot === '' ? '' : `/${chroot}`
}

/** As durations are given everywhere; a number alone is milliseconds. */
function durations({ parameters, printable }: ResourceUri): { sessionTimeout?: Duration; tick?: Duration } {
  const given = (name: string) => {
    const text = parameters.get(name)
    if (text === undefined) return undefined
    const ms = milliseconds(/^\d+$/.test(text) ? Number(text) : text, `${printable}: ${name}`)
    if (ms > 0) return ms
    throw new InvalidArgument(`${printable}: ${name} has to be longer than no time`)
  }
  const [sessionTimeout, tick] = [given('sessionTimeout'), given('tick')]
  if (tick !== undefined && tick > (sessionTimeout ?? DEFAULT_SESSION_TIMEOUT)) {
    const most = sessionTimeout === undefined ? `the ${DEFAULT_SESSION_TIMEOUT} ms there are by default` : 'it'
    throw new InvalidArgument(
      `${printable}: tick is longer than sessionTimeout, ${most}; servers grant two ticks at least`,
    )
  }
  return { ...(sessionTimeout === undefined ? {} : { sessionTimeout }), ...(tick === undefined ? {} : { tick }) }
}
