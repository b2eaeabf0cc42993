/** From a URI to open logbooks. */
import { InvalidArgument } from '../core/errors.ts'
import { parseUri, type ResourceUri } from '../core/uri.ts'
import { directoryPersistence } from './directory/index.ts'
import { memoryPersistence } from './memory/index.ts'
import type { Persistence } from './persistence.ts'

interface Scheme {
  /** How such a URI is written, for people who got it wrong. */
  readonly usage: string
  make(uri: ResourceUri): Persistence | Promise<Persistence>
}

/** What talks to servers is loaded when it is asked for, not before. */
const sql = async (uri: ResourceUri) => (await import('./sql/index.ts')).sqlPersistence(uri)
const zookeeper = async (uri: ResourceUri) => (await import('./zookeeper/index.ts')).zooKeeperPersistence(uri)

const SCHEMES: ReadonlyMap<string, Scheme> = new Map([
  ['memory', { usage: 'memory: or memory:NAME', make: memoryPersistence }],
  ['directory', { usage: 'directory:./logbooks', make: directoryPersistence }],
  ['postgres', { usage: 'postgres://user@host/database', make: sql }],
  ['zookeeper', { usage: 'zookeeper://127.0.0.1:2181/taskflow/logbooks', make: zookeeper }],
  ['postgresql', { usage: 'postgresql://user@host/database', make: sql }],
])

/**
 * Opens the logbooks that a URI names; whoever calls this closes them. An object that is open already is handed back
 * as it is, and stays with whoever opened it.
 *
 * - `memory:` is private and gone with the object; `memory:NAME` is shared by all in this process that name it.
 * - `directory:DIR` keeps them in files, shared by the processes of one machine; DIR is relative to the working
 *   directory and made if it is not there.
 * - `postgres://user:password@host:5432/database` keeps them in a database, shared by the processes of many machines; it
 *   takes the `pg` package.
 * - `zookeeper://127.0.0.1:2181/taskflow/logbooks` keeps small ones beside the board.
 *
 * @throws InvalidArgument for an unknown scheme or a parameter that is not known
 * @throws StorageFailure when the place cannot be used
 * @example await using persistence = await openPersistence('directory:./logbooks')
 */
export async function openPersistence(uri: string | Persistence): Promise<Persistence> {
  if (typeof uri !== 'string') return uri
  const parsed = parseUri(uri, 'persistence')
  const scheme = SCHEMES.get(parsed.scheme)
  if (!scheme) {
    const known = [...SCHEMES.values()].map(({ usage }) => usage).join(', ')
    throw new InvalidArgument(`${parsed.printable}: no logbooks can be kept in ${parsed.scheme}:; write ${known}`)
  }
  const persistence = await scheme.make(parsed)
  await persistence.open()
  return persistence
}
