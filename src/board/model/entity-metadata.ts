/** Bounds the memory of the metadata of entities: any client can write it, and processes read all entities of a kind at once. */
import { encode, encodePlain, toFields, weigh } from '../../core/codec.ts'
import { PayloadTooLarge } from '../../core/errors.ts'
import { shareOfHeap } from '../../core/memory-size.ts'
import type { Entity } from '../contract/index.ts'

type Metadata = Entity['metadata']

/** The memory that the metadata of one entity may take once it is decoded, in bytes: far more than a conductor with a thousand flows needs. */
const MAX_METADATA_MEMORY = 1_024 * 1_024
/** The metadata of one list may take the heap divided by this number. */
const LIST_PARTS = 16

/** Refuses metadata that takes too much memory. @throws PayloadTooLarge; InvalidArgument for a value that is not plain data */
export function assertMetadata({ kind, name, metadata }: Pick<Entity, 'kind' | 'name' | 'metadata'>): void {
  const memory = weigh(encode(metadata, 'msgpack'), 'msgpack', Number.POSITIVE_INFINITY)
  if (memory <= MAX_METADATA_MEMORY) return
  throw new PayloadTooLarge(
    `${kind} ${name}: its metadata takes ${memory} bytes of memory, at most ${MAX_METADATA_MEMORY} are allowed; ` +
      'register less, and keep large data elsewhere',
  )
}

/** Returns a function that reads the metadata of the entities of one list. In place of metadata that takes too much memory, it returns a note. */
export function metadataReader(): (decoded: unknown) => Metadata {
  let left = shareOfHeap(LIST_PARTS)
  return (decoded) => {
    const metadata = toFields(decoded) ?? {}
    const memory = weigh(encodePlain(metadata, 'msgpack'), 'msgpack', Number.POSITIVE_INFINITY)
    if (memory > Math.min(MAX_METADATA_MEMORY, left))
      return { leftOut: `the metadata takes ${memory} bytes of memory, more than a list of entities may keep` }
    left -= memory
    return metadata
  }
}
