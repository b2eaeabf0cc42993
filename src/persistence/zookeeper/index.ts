/** Logbooks in ZooKeeper: `zookeeper://host:2181,host2:2181/path?sessionTimeout=10s&chroot=/apps&retryFor=30s` */
import { InvalidArgument } from '../../core/errors.ts'
import { type Duration, milliseconds } from '../../core/time.ts'
import { assertParameters, type ResourceUri } from '../../core/uri.ts'
import type { Persistence } from '../persistence.ts'
import { DEFAULT_PATH, Layout } from './layout.ts'
import { ZooKeeperPersistence } from './zookeeper-persistence.ts'

/** Longer than an ensemble takes to elect another leader. */
const RETRY_FOR = '30s'

/** @throws InvalidArgument when the URI names no hosts, or has a parameter that means nothing */
export function zooKeeperPersistence(uri: ResourceUri): Persistence {
  assertParameters(uri, ['sessionTimeout', 'chroot', 'retryFor'])
  if (uri.authority === '')
    throw new InvalidArgument(`${uri.printable}: no hosts; write zookeeper://127.0.0.1:2181${DEFAULT_PATH}`)
  if (uri.credentials)
    throw new InvalidArgument(`${uri.printable}: no user and password can stand before the hosts; leave them out`)
  const sessionTimeout = uri.parameters.get('sessionTimeout')
  if (sessionTimeout !== undefined) milliseconds(sessionTimeout, `${uri.printable}: sessionTimeout`)
  const path = uri.path === '' || uri.path === '/' ? DEFAULT_PATH : uri.path.replace(/\/$/, '')
  return new ZooKeeperPersistence({
    uri: uri.printable,
    hosts: `${uri.authority}${uri.parameters.get('chroot') ?? ''}`,
    layout: new Layout(path),
    retryFor: milliseconds(uri.parameters.get('retryFor') ?? RETRY_FOR, `${uri.printable}: retryFor`),
    ...(sessionTimeout === undefined ? {} : { sessionTimeout: sessionTimeout as Duration }),
  })
}
