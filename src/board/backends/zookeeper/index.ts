/**
 * `zookeeper://host:2181,host2:2181/path?sessionTimeout=10s&tick=2s&chroot=/apps&encoding=json`, or `&client=native`;
 * `zookeepers:` is TLS.
 */
import { InvalidArgument, UnsupportedCapability } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { assertParameters, type ResourceUri } from '../../../core/uri.ts'
import {
  type AuthInfo,
  LOCATION_PARAMETERS,
  NativeZooKeeper,
  parseZooKeeperLocation,
  type SecurityOptions,
} from '../../../zookeeper/index.ts'
import type { Backend } from '../../backend.ts'
import { ZooKeeperBackend } from './backend.ts'
import { DEFAULT_PATH, Layout } from './store/layout.ts'

export type { SecurityOptions } from '../../../zookeeper/index.ts'

interface ZooKeeperBoardOptions extends SecurityOptions {
  readonly log?: Logger
  readonly create?: boolean
}

/**
 * Returns the backend for a URI.
 *
 * @throws InvalidArgument when the URI names no hosts, a path that cannot be a board, or files that cannot be read
 */
export async function zooKeeperBackend(uri: ResourceUri, options: ZooKeeperBoardOptions): Promise<Backend> {
  assertParameters(uri, ['encoding', 'client', ...LOCATION_PARAMETERS])
  const place = await parseZooKeeperLocation(uri, { tenant: 'board', defaultPath: DEFAULT_PATH }, options)
  const encoding = uri.parameters.get('encoding')
  if (encoding !== undefined && encoding !== 'msgpack' && encoding !== 'json')
    throw new InvalidArgument(
      `${uri.printable}: encoding must be msgpack, or json for a board that is shared with TaskFlow, got '${encoding}'`,
    )
  const board = {
    uri: uri.printable,
    layout: new Layout(place.path),
    ...(options.create === undefined ? {} : { create: options.create }),
  }
  const { path: _path, security, ...reaching } = place
  const client = {
    ...reaching,
    ...(options.log ? { log: options.log } : {}),
  }
  if (!isNative(uri))
    return new ZooKeeperBackend({ ...board, ...client, ...security, ...(encoding === undefined ? {} : { encoding }) })
  // Loaded lazily: most boards use our own client and do not need the backend without transactions.
  const { WithoutMultiBackend } = await import('./native/backend.ts')
  const { identified = false, auth = [], ...rest } = security
  const zookeeper = new NativeZooKeeper({ ...client, ...rest, auth: auth.map(toTextAuth) })
  return new WithoutMultiBackend({ ...board, identified, zookeeper })
}

function isNative({ parameters, printable }: ResourceUri): boolean {
  const client = parameters.get('client')
  if (client === undefined) return false
  if (client !== 'native') {
    throw new InvalidArgument(`${printable}: client must be native (ZooKeeper's C client) or left out, got '${client}'`)
  }
  if (parameters.get('encoding') === 'json') {
    const message = `${printable}: a board that is shared with TaskFlow needs transactions; remove client=native`
    throw new UnsupportedCapability(message, { capability: 'shared' })
  }
  return true
}

/** Returns the credentials as text, because the C client accepts only text. */
function toTextAuth({ scheme, auth }: AuthInfo): { readonly scheme: string; readonly auth: string } {
  if (typeof auth === 'string') return { scheme, auth }
  throw new UnsupportedCapability('client=native needs credentials as text, not as bytes', { capability: 'auth' })
}
