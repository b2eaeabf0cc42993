/** Keyboard shortcuts. Everything can be done without them, and they can be switched off. */
import { href, navigate, PAGES, type Page, place } from './router.ts'
import { keys } from './settings.ts'

const SEQUENCE_MS = 1_500

const PAGE_BY_LETTER = new Map(Object.entries(PAGES).map(([page, letter]) => [letter as string, page as Page]))

/** Listens for keyboard shortcuts. @param openHelp shows the list of shortcuts */
export function startKeyboard(openHelp: () => void): void {
  let prefixAt = 0
  addEventListener('keydown', (event) => {
    if (event.key === '?' && !isTyping(event)) return take(event, openHelp)
    if (keys.value === 'off' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return
    const page = Date.now() - prefixAt < SEQUENCE_MS ? PAGE_BY_LETTER.get(event.key) : undefined
    prefixAt = event.key === 'g' ? Date.now() : 0
    if (page !== undefined) return take(event, () => navigate(href(page)))
    if (event.key === '/') take(event, search)
    else if (event.key === 'j') take(event, () => move(1))
    else if (event.key === 'k') take(event, () => move(-1))
    else if (event.key === 'x') take(event, select)
  })
}

function take(event: KeyboardEvent, action: () => void): void {
  event.preventDefault()
  action()
}

function isTyping({ target }: KeyboardEvent): boolean {
  if (document.querySelector('dialog[open]') !== null) return true
  if (!(target instanceof HTMLElement)) return false
  if (target instanceof HTMLInputElement) return target.type !== 'checkbox'
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
}

function search(): void {
  const box = document.getElementById('search')
  if (box instanceof HTMLInputElement) {
    box.focus()
    box.select()
  } else if (place.value.board !== undefined) {
    navigate(href('jobs'))
    requestAnimationFrame(() => document.getElementById('search')?.focus())
  }
}

/** Moves the focus to the link of the next row, so that Enter opens it. */
function move(by: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>('main [data-row-link]')]
  const row = document.activeElement?.closest('[data-row]')
  const present = links.findIndex((link) => row?.contains(link))
  const next = present < 0 ? (by > 0 ? 0 : links.length - 1) : present + by
  links[next]?.focus()
  links[next]?.scrollIntoView({ block: 'nearest' })
}

function select(): void {
  const box = document.activeElement?.closest('[data-row]')?.querySelector('[data-select]')
  if (box instanceof HTMLInputElement) box.click()
}
