/** Logbooks in memory: `memory:` is private to who opens it, `memory:NAME` is shared within the process. */
import { InvalidArgument } from '../../core/errors.ts'
import { assertParameters, type ResourceUri } from '../../core/uri.ts'
import type { Persistence } from '../persistence.ts'
import { noLogbooksError } from '../request-checks.ts'
import { type MemoryBooks, MemoryPersistence } from './memory-persistence.ts'

/** By name, as long as the process lives: closing must not lose what the next to open expects to find. */
const sharedBooks = new Map<string, MemoryBooks>()

/** @throws InvalidArgument for parameters, and for a host, which memory has none of; NotFound as a look finds none */
export function memoryPersistence(uri: ResourceUri, options: { readonly create?: boolean } = {}): Persistence {
  assertParameters(uri, [])
  if (uri.authority) throw new InvalidArgument(`${uri.printable}: memory has no host; write memory: or memory:NAME`)
  if (options.create === false && !sharedBooks.has(uri.path))
    throw noLogbooksError(uri.printable, 'nobody in this process has opened them')
  return new MemoryPersistence(uri.printable, uri.path ? openBooks(uri.path) : new Map())
}

function openBooks(name: string): MemoryBooks {
  const known = sharedBooks.get(name)
  if (known) return known
  const books: MemoryBooks = new Map()
  sharedBooks.set(name, books)
  return books
}
