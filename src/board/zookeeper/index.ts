/** `zookeeper://host:2181,host2:2181/path?sessionTimeout=10s&chroot=/apps&encoding=json`, or `&client=native` */
import { InvalidArgument, UnsupportedCapability } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { type Duration, milliseconds } from '../../core/time.ts'
import { assertParameters, type ResourceUri } from '../../core/uri.ts'
import { NativeZooKeeper } from '../../zookeeper/index.ts'
import type { Backend } from '../backend.ts'
import { ZooKeeperBackend } from './backend.ts'
import { DEFAULT_PATH, Layout } from './layout.ts'
import { StepwiseBackend } from './stepwise/backend.ts'

/** @throws InvalidArgument when the URI names no hosts, or a path that cannot be a board */
export function zooKeeperBackend(uri: ResourceUri, options: { log?: Logger; create?: boolean }): Backend {
  assertParameters(uri, ['sessionTimeout', 'chroot', 'encoding', 'client'])
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
  const board = {
    uri: uri.printable,
    layout: new Layout(path),
    ...(options.create === undefined ? {} : { create: options.create }),
  }
  const client = {
    hosts: `${uri.authority}${uri.parameters.get('chroot') ?? ''}`,
    ...(sessionTimeout === undefined ? {} : { sessionTimeout: sessionTimeout as Duration }),
    ...(options.log ? { log: options.log } : {}),
  }
  if (isNative(uri)) return new StepwiseBackend({ ...board, zookeeper: new NativeZooKeeper(client) })
  return new ZooKeeperBackend({ ...board, ...client, ...(encoding === undefined ? {} : { encoding }) })
}

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
