/**
 * How a long trash is listed: first which entries there are, in their order and with their sizes, then their contents page by
 * page. Neither this process nor a reply of the server holds all of them, and a page is read when the one before is used up.
 */

/** The most that the entries of a page have together, in bytes, unless one alone has more. */
const MAX_PAGE_BYTES = 1_024 * 1_024
/** The most entries that a page has. */
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
