/** Logbooks in memory: `memory:` is private to its opener, `memory:NAME` is shared within the process. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertParameters, type ResourceUri } from '../../core/uri.ts'
import type { Persistence } from '../persistence.ts'
import { noLogbooksError } from '../requests.ts'
import { type MemoryBooks, MemoryPersistence } from './memory-persistence.ts'

/**
 * The shared books by name, as long as the process lives: closing must not lose what the next opener expects to find.
 */
const sharedBooks = new Map<string, MemoryBooks>()

/**
 * Returns logbooks in memory. @throws InvalidArgument for parameters and for a host; NotFound with `create: false` when
 * they were never opened
 */
export function memoryPersistence(uri: ResourceUri, options: { readonly create?: boolean } = {}): Persistence {
  assertParameters(uri, [])
  if (uri.authority) throw new InvalidArgument(`${uri.printable}: memory has no host; write memory: or memory:NAME`)
  if (options.create === false && !sharedBooks.has(uri.path))
    throw noLogbooksError(uri.printable, 'they were not opened in this process')
  return new MemoryPersistence(uri.printable, uri.path ? openBooks(uri.path) : new Map())
}

function openBooks(name: string): MemoryBooks {
  const known = sharedBooks.get(name)
  if (known) return known
  const books: MemoryBooks = new Map()
  sharedBooks.set(name, books)
  return books
}
