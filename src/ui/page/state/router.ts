/** Parses the address of the page. It contains every filter, so that links and the back button work. */
import { computed, signal } from '@preact/signals'
import { BASE, BASE_PATH } from './base.ts'

/** The pages, in the order of the menu; the letter goes there after `g`. */
export const PAGES = {
  overview: 'o',
  jobs: 'j',
  trash: 't',
  queues: 'q',
  flows: 'f',
  schedules: 's',
  limits: 'l',
  batches: 'b',
  conductors: 'c',
  history: 'h',
  logbooks: 'k',
  doctor: 'd',
} as const
export type Page = keyof typeof PAGES

export interface Place {
  /** Undefined where the address names no board. */
  readonly board: string | undefined
  /** Undefined if there is no such page. */
  readonly page: Page | undefined
  readonly id: string | undefined
  readonly query: URLSearchParams
}

const address = signal(location.href)

/** The present place. */
export const place = computed(() => parsePlace(new URL(address.value)))

/** Returns the place that a URL names: `BASE/b/BOARD/PAGE/ID?…`. */
function parsePlace({ pathname, searchParams }: URL): Place {
  const rest = pathname.startsWith(BASE_PATH) ? pathname.slice(BASE_PATH.length) : ''
  const [word, board, page = 'overview', id] = rest.split('/').filter(Boolean).map(decodeSafely)
  return {
    board: word === 'b' ? board : undefined,
    page: isPage(page) ? page : undefined,
    id,
    query: searchParams,
  }
}

export function isPage(name: string): name is Page {
  return Object.hasOwn(PAGES, name)
}

function decodeSafely(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Returns the address of a page of a board, relative to the base; parameters that are undefined or empty are left out. */
export function hrefOn(
  board: string,
  page: Page,
  { id, ...query }: Readonly<Record<string, string | undefined>> = {},
): string {
  const path = ['b', board, page, ...(id === undefined ? [] : [id])].map(encodeURIComponent).join('/')
  const parameters = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]))
  return parameters.length === 0 ? path : `${path}?${new URLSearchParams(parameters)}`
}

/** Returns the address of a page of the present board. */
export function href(page: Page, parameters?: Readonly<Record<string, string | undefined>>): string {
  return hrefOn(place.value.board ?? '', page, parameters)
}

/** Goes to an address within the page; with `replace`, the back button skips the present one. */
export function navigate(to: string, { replace = false } = {}): void {
  const url = new URL(to, BASE).href
  if (url !== location.href) history[replace ? 'replaceState' : 'pushState'](null, '', url)
  const before = place.value
  address.value = location.href
  const { page, id, board } = place.value
  if (page !== before.page || id !== before.id || board !== before.board) scrollTo(0, 0)
}

/** Sets parameters of the present address. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>, options?: { replace?: boolean }): void {
  const { page = 'overview', id, query } = place.value
  navigate(href(page, { ...Object.fromEntries(query), ...changes, ...(id === undefined ? {} : { id }) }), options)
}

addEventListener('popstate', () => {
  address.value = location.href
})
