/**
 * `zookeeper://host:2181,host2:2181/path?sessionTimeout=10s&tick=2s&chroot=/apps&encoding=json`; `zookeepers:` is TLS.
 */
import { InvalidArgument } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import type { ResourceUri } from '../../../core/uri.ts'
import { assertLocationParameters, parseZooKeeperLocation, type SecurityOptions } from '../../../zookeeper/index.ts'
import type { Backend } from '../../contract/index.ts'
import { ZooKeeperBackend } from './backend.ts'
import { DEFAULT_PATH, ZooKeeperLayout } from './store/layout.ts'

export type { SecurityOptions } from '../../../zookeeper/index.ts'

interface ZooKeeperBoardOptions extends SecurityOptions {
  readonly log?: Logger
  readonly create?: boolean
}

/**
 * Returns the backend for a URI.
 *
 * @throws InvalidArgument when the URI names no hosts, an unknown parameter, a path that cannot be a board, or files that cannot be read
 */
export async function zooKeeperBackend(uri: ResourceUri, options: ZooKeeperBoardOptions): Promise<Backend> {
  assertLocationParameters(uri, ['encoding'])
  const place = await parseZooKeeperLocation(uri, { tenant: 'board', defaultPath: DEFAULT_PATH }, options)
  const encoding = uri.parameters.get('encoding')
  if (encoding !== undefined && encoding !== 'msgpack' && encoding !== 'json')
    throw new InvalidArgument(
      `${uri.printable}: encoding must be msgpack, or json for a board that is shared with TaskFlow, got '${encoding}'`,
    )
  const board = {
    uri: uri.printable,
    layout: new ZooKeeperLayout(place.path),
    ...(options.create === undefined ? {} : { create: options.create }),
  }
  const { path: _path, security, ...reaching } = place
  const client = {
    ...reaching,
    ...(options.log ? { log: options.log } : {}),
  }
  return new ZooKeeperBackend({ ...board, ...client, ...security, ...(encoding === undefined ? {} : { encoding }) })
}
