/** `zookeeper://host:2181,host2:2181/path?sessionTimeout=10s&chroot=/apps&encoding=json` */
import { InvalidArgument } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { type Duration, milliseconds } from '../../core/time.ts'
import { assertParameters, type ResourceUri } from '../../core/uri.ts'
import type { Backend } from '../backend.ts'
import { ZooKeeperBackend } from './backend.ts'
import { DEFAULT_PATH, Layout } from './layout.ts'

/** @throws InvalidArgument when the URI names no hosts, or a path that cannot be a board */
export function zooKeeperBackend(uri: ResourceUri, options: { log?: Logger; create?: boolean }): Backend {
  assertParameters(uri, ['sessionTimeout', 'chroot', 'encoding'])
  if (uri.authority === '')
    throw new InvalidArgument(`${uri.printable}: no hosts; write zookeeper://127.0.0.1:2181/path`)
  // Before anything quotes the hosts: what stands there may be a password.
  if (uri.authority.includes('@'))
    throw new InvalidArgument(`${uri.printable}: no user and password can stand before the hosts; leave them out`)
  const path = uri.path === '' || uri.path === '/' ? DEFAULT_PATH : uri.path.replace(/\/$/, '')
  const sessionTimeout = uri.parameters.get('sessionTimeout')
  if (sessionTimeout !== undefined) milliseconds(sessionTimeout, 'sessionTimeout')
  const encoding = uri.parameters.get('encoding')
  if (encoding !== undefined && encoding !== 'msgpack' && encoding !== 'json')
    throw new InvalidArgument(
      `${uri.printable}: encoding is msgpack, or json for a board that is shared with TaskFlow; it cannot be ${encoding}`,
    )
  return new ZooKeeperBackend({
    uri: uri.printable,
    hosts: `${uri.authority}${uri.parameters.get('chroot') ?? ''}`,
    layout: new Layout(path),
    ...(encoding === undefined ? {} : { encoding }),
    ...(sessionTimeout === undefined ? {} : { sessionTimeout: sessionTimeout as Duration }),
    ...(options.log ? { log: options.log } : {}),
    ...(options.create === undefined ? {} : { create: options.create }),
  })
}
