/**
 * The listing of a long trash: first the entries in their order, with their sizes, then their contents page by page. So
 * neither this process nor a reply of the server holds all contents, and a page is read only when the page before it is
 * used up.
 */

import type { TrashListing } from '../contract/index.ts'

/** The maximum size of the entries of a page together. A single larger entry is a page of its own. */
const MAX_PAGE_BYTES = 1_024 * 1_024
/** The maximum number of entries of a page. */
const MAX_PAGE_ENTRIES = 500

/** Yields the entries in pages that can be read at once. */
export function* pagesOf<T extends { readonly bytes: number }>(entries: readonly T[]): Generator<readonly T[]> {
  let page: T[] = []
  let bytes = 0
  for (const entry of entries) {
    if (page.length >= MAX_PAGE_ENTRIES || (page.length > 0 && bytes + entry.bytes > MAX_PAGE_BYTES)) {
      yield page
      page = []
      bytes = 0
    }
    page.push(entry)
    bytes += entry.bytes
  }
  if (page.length > 0) yield page
}

/**
 * Returns the part of the trash that a listing asks for, in its order, and reports the number of all entries.
 *
 * @param entries all entries, oldest first
 * @param idOf returns the id by which `after` names an entry
 */
export function selectTrash<T>(
  entries: readonly T[],
  { newestFirst = false, after, onCount }: TrashListing = {},
  idOf: (entry: T) => string,
): readonly T[] {
  onCount?.(entries.length)
  const ordered = newestFirst ? entries.toReversed() : entries
  if (!after) return ordered
  const found = ordered.findIndex((entry) => idOf(entry) === after.id)
  return ordered.slice(found < 0 ? after.position : found + 1)
}
