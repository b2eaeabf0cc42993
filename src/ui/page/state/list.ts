/** Reads a long list page by page. For each page the server looks at a limited number of jobs, and says how many there are. */
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
  /** Whether there were changes since the pages were read. Several pages are not read again until the reader asks for it. */
  readonly outdated: boolean
  readonly more: () => void
  readonly reload: () => void
}

/** Returns whether the board may have more items than the answers so far. */
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
  const start = (): State<T> => ({ path, pages: recallKept(path) ?? [], loading: true, outdated: false })
  const [state, setState] = useState<State<T>>(start)
  const present = state.path === path ? state : start()
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
    // After the back button several pages are cached. They stay, so that the list keeps its scroll position.
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
  // While the server reads a long board it reports no changes, but each answer has more jobs than the one before.
  useEffect(() => {
    if (!isBeingRead || present.loading) return
    const readMore = (): void => {
      // A hidden tab reads nothing; when it is shown, everything is read.
      if (!document.hidden) void load([])
    }
    const timer = setTimeout(readMore, MIN_INTERVAL_MS)
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
