/** Logbooks in an SQLite file: `sqlite:./jobs.db?synchronous=normal&create=false` */

import type { ResourceUri } from '../../core/uri.ts'
import { parseSqliteLocation } from '../../sqlite/index.ts'
import type { Persistence } from '../persistence.ts'
import { SqlitePersistence } from './sqlite-persistence.ts'

/** Returns logbooks in a file. @throws InvalidArgument for an invalid path or parameter */
export function sqlitePersistence(uri: ResourceUri, { create }: { readonly create?: boolean } = {}): Persistence {
  return new SqlitePersistence({ uri: uri.printable, location: parseSqliteLocation(uri, { create }) })
}
