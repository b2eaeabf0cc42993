/** A long list, read page by page. The server looks at a bounded part of the board for each page, and says how far it is. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { WireScan } from '../../wire/common.ts'
import { type ApiError, read } from './api.ts'
import { onChange } from './changes.ts'
import { isConcerned, keep, recallKept, toApiError } from './reading.ts'

const MIN_INTERVAL_MS = 1_000

export interface Listing<T> {
  readonly items: readonly T[]
  /** Undefined until the first answer. */
  readonly scan: WireScan | undefined
  readonly loading: boolean
  readonly error: ApiError | undefined
  /** Whether there were changes since several pages were read; they are not read again by themselves. */
  readonly outdated: boolean
  readonly more: () => void
  readonly reload: () => void
}

/** Returns whether there may be more than was answered so far. */
export function mayHaveMore({ next, reading }: WireScan): boolean {
  return next !== undefined || reading !== undefined
}

interface Page<T> {
  readonly items: readonly T[]
  readonly scan: WireScan
}

interface State<T> {
  readonly path: string
  readonly pages: readonly Page<T>[]
  readonly loading: boolean
  readonly error?: ApiError | undefined
  readonly outdated: boolean
}

/**
 * Reads the pages of a list.
 *
 * @param path the endpoint with its search, without `after`
 * @param itemsOf returns the items of an answer
 */
export function useList<A extends { readonly scan: WireScan }, T>(
  path: string,
  itemsOf: (answer: A) => readonly T[],
  topics: readonly string[],
): Listing<T> {
  const begin = (loading: boolean): State<T> => ({ path, pages: recallKept(path) ?? [], loading, outdated: false })
  const [state, setState] = useState<State<T>>(() => begin(true))
  const present = state.path === path ? state : begin(true)
  const latest = useRef(present)
  latest.current = present
  const reading = useRef<AbortController | undefined>(undefined)
  const wanted = topics.join(' ')

  const load = async (pagesBefore: readonly Page<T>[]): Promise<void> => {
    reading.current?.abort()
    const controller = new AbortController()
    reading.current = controller
    const after = pagesBefore.at(-1)?.scan.next
    const pages = latest.current.pages
    setState({ path, pages, loading: true, outdated: false })
    const url =
      after === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}`
    const answer = await read<A>(url, controller.signal).catch((error: unknown) => error as Error)
    if (controller.signal.aborted) return
    reading.current = undefined
    if (answer instanceof Error) {
      setState({ path, pages, loading: false, error: toApiError(answer), outdated: false })
      return
    }
    const all = [...pagesBefore, { items: itemsOf(answer), scan: answer.scan }]
    keep(path, all)
    setState({ path, pages: all, loading: false, outdated: false })
  }

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let startedAt = performance.now()
    const arm = (): void => {
      timer = setTimeout(again, Math.max(0, startedAt + MIN_INTERVAL_MS - performance.now()))
    }
    const again = (): void => {
      timer = undefined
      startedAt = performance.now()
      // A change during a read may have come too late for it.
      if (reading.current !== undefined) arm()
      else if (latest.current.pages.length > 1) setState({ ...latest.current, outdated: true })
      else void load([])
    }
    const stop = onChange((changed) => {
      if (timer === undefined && isConcerned(wanted.split(' '), changed)) arm()
    })
    // On the way back several pages may be there: they stay, so that the place in the list does.
    if (latest.current.pages.length > 1) setState({ ...latest.current, loading: false, outdated: true })
    else void load([])
    return () => {
      stop()
      clearTimeout(timer)
      reading.current?.abort()
      reading.current = undefined
    }
  }, [path, wanted])

  const { pages } = present
  const isBeingRead = pages.length === 1 && pages[0]?.scan.reading !== undefined
  // There is no change while a long board is read: the next answer has more of it.
  useEffect(() => {
    if (!isBeingRead || present.loading) return
    const timer = setTimeout(() => void load([]), MIN_INTERVAL_MS)
    return () => clearTimeout(timer)
  }, [isBeingRead, present.loading])

  const last = pages.at(-1)?.scan
  return {
    items: pages.flatMap(({ items }) => items),
    scan: last && { ...last, looked: pages.reduce((sum, { scan }) => sum + scan.looked, 0) },
    loading: present.loading,
    error: present.error,
    outdated: present.outdated,
    more: () => void load(present.pages),
    reload: () => void load([]),
  }
}
