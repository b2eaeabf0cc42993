/** `zookeeper://host:2181,host2:2181/path?sessionTimeout=10s&tick=2s&chroot=/apps&encoding=json`; `zookeepers:` is TLS. */
import { InvalidArgument } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { type Duration, milliseconds } from '../../core/time.ts'
import { assertParameters, type ResourceUri } from '../../core/uri.ts'
import type { Backend } from '../backend.ts'
import { ZooKeeperBackend } from './backend.ts'
import { DEFAULT_PATH, Layout } from './layout.ts'
import { SECURITY_PARAMETERS, type SecurityOptions, securityOf } from './security.ts'

export type { SecurityOptions } from './security.ts'

interface Options extends SecurityOptions {
  readonly log?: Logger
  readonly create?: boolean
}

/** @throws InvalidArgument when the URI names no hosts, a path that cannot be a board, or files that cannot be read */
export async function zooKeeperBackend(uri: ResourceUri, options: Options): Promise<Backend> {
  assertParameters(uri, ['sessionTimeout', 'tick', 'chroot', 'encoding', ...SECURITY_PARAMETERS])
  if (uri.authority === '')
    throw new InvalidArgument(`${uri.printable}: no hosts; write zookeeper://127.0.0.1:2181/path`)
  const path = uri.path === '' || uri.path === '/' ? DEFAULT_PATH : uri.path.replace(/\/$/, '')
  const encoding = uri.parameters.get('encoding')
  if (encoding !== undefined && encoding !== 'msgpack' && encoding !== 'json')
    throw new InvalidArgument(
      `${uri.printable}: encoding is msgpack, or json for a board that is shared with TaskFlow; it cannot be ${encoding}`,
    )
  return new ZooKeeperBackend({
    uri: uri.printable,
    hosts: `${uri.authority}${uri.parameters.get('chroot') ?? ''}`,
    layout: new Layout(path),
    ...durations(uri),
    ...(await securityOf(uri, options)),
    ...(encoding === undefined ? {} : { encoding }),
    ...(options.log ? { log: options.log } : {}),
    ...(options.create === undefined ? {} : { create: options.create }),
  })
}

function durations({ parameters, printable }: ResourceUri): { sessionTimeout?: Duration; tick?: Duration } {
  const given = (name: string) => {
    const text = parameters.get(name)
    if (text !== undefined && !(milliseconds(text, name) > 0))
      throw new InvalidArgument(`${printable}: ${name} has to be longer than no time`)
    return text === undefined ? {} : { [name]: text as Duration }
  }
  return { ...given('sessionTimeout'), ...given('tick') }
}
