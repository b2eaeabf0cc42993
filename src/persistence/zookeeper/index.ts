/**
 * Logbooks in ZooKeeper: `zookeeper://host:2181,host2:2181/path?retryFor=30s`, with the same parameters for hosts,
 * times, TLS, users and ACLs as a board's URI; `zookeepers:` is TLS.
 */
import type { Logger } from '../../core/log.ts'
import { defined } from '../../core/options.ts'
import { type ResourceUri, readDurationParameter } from '../../core/uri.ts'
import { assertLocationParameters, parseZooKeeperLocation, type SecurityOptions } from '../../zookeeper/index.ts'
import type { Persistence } from '../persistence.ts'
import { DEFAULT_PATH, LogbookLayout } from './layout.ts'
import { ZooKeeperPersistence } from './zookeeper-persistence.ts'

export type { SecurityOptions } from '../../zookeeper/index.ts'

/** The default time limit in milliseconds: longer than an ensemble takes to elect another leader. */
const DEFAULT_RETRY_FOR_MS = 30_000

/**
 * Returns logbooks in ZooKeeper. @throws InvalidArgument when the URI names no hosts, has an unknown parameter, or
 * names files that cannot be read
 */
export async function zooKeeperPersistence(
  uri: ResourceUri,
  options: SecurityOptions & { readonly create?: boolean; readonly log?: Logger } = {},
): Promise<Persistence> {
  assertLocationParameters(uri, ['retryFor'])
  const retryFor = readDurationParameter(uri, 'retryFor') ?? DEFAULT_RETRY_FOR_MS
  const { path, ...place } = await parseZooKeeperLocation(
    uri,
    { tenant: 'logbooks', defaultPath: DEFAULT_PATH },
    options,
  )
  const { create, log } = options
  const rest = defined({ create, log })
  return new ZooKeeperPersistence({ uri: uri.printable, layout: new LogbookLayout(path), retryFor, ...place, ...rest })
}
