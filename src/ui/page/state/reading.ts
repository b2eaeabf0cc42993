/** Reads an endpoint for a part of the page: at once, and again after changes. Keeps the answers for the back button. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ApiError, read } from './api.ts'
import { type Changed, onChange } from './changes.ts'

/** The shortest time between two reads of one thing. */
const MIN_INTERVAL_MS = 1_000
const MAX_KEPT = 60

/** The newest answers, which the back button shows at once. */
const kept = new Map<string, unknown>()

export interface Reading<T> {
  readonly data: T | undefined
  /** The error of the newest read; `data` is older then. */
  readonly error: ApiError | undefined
  readonly loading: boolean
  readonly reload: () => void
}

interface Answer<T> {
  readonly path: string | undefined
  readonly data?: T | undefined
  readonly error?: ApiError | undefined
  readonly loading: boolean
}

/**
 * Reads an endpoint, and again when one of the topics changes.
 *
 * @param path undefined reads nothing
 * @param topics `*` for every change
 */
export function useReading<T>(path: string | undefined, topics: readonly string[]): Reading<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ path, loading: true })
  const wanted = topics.join(' ')
  const reader = useMemo(() => (path === undefined ? undefined : new Reader<T>(path, setAnswer)), [path])
  useEffect(() => {
    if (reader === undefined) return undefined
    reader.open()
    const stop = onChange((changed) => {
      if (isConcerned(wanted.split(' '), changed)) reader.refresh()
    })
    return () => {
      stop()
      reader.close()
    }
  }, [reader, wanted])
  const present: Answer<T> = answer.path === path ? answer : { path, loading: path !== undefined }
  return {
    data: present.data ?? (path === undefined ? undefined : (kept.get(path) as T | undefined)),
    error: present.error,
    loading: present.loading,
    reload: () => reader?.refresh(),
  }
}

/** Returns whether a change belongs to one of the topics. */
export function isConcerned(topics: readonly string[], changed: Changed): boolean {
  return changed === 'all' || topics.some((topic) => topic === '*' || changed.has(topic))
}

/** Keeps an answer for the back button. */
export function keep(path: string, data: unknown): void {
  kept.delete(path)
  kept.set(path, data)
  const [oldest] = kept.keys()
  if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest)
}

export function recallKept<T>(path: string): T | undefined {
  return kept.get(path) as T | undefined
}

/** Reads one endpoint, one request at a time. A change during a request causes another one after it. */
class Reader<T> {
  readonly #path: string
  readonly #report: (answer: Answer<T>) => void
  #closing = new AbortController()
  #busy = false
  #again = false
  #startedAt = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #data: T | undefined

  constructor(path: string, report: (answer: Answer<T>) => void) {
    this.#path = path
    this.#report = report
  }

  open(): void {
    this.#closing = new AbortController()
    this.#busy = false
    this.#again = false
    this.refresh()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#closing.abort()
  }

  refresh(): void {
    if (this.#busy) this.#again = true
    else if (this.#timer === undefined) {
      const wait = Math.max(0, this.#startedAt + MIN_INTERVAL_MS - performance.now())
      if (this.#startedAt === 0 || wait === 0) void this.#read()
      else this.#timer = setTimeout(() => void this.#read(), wait)
    }
  }

  async #read(): Promise<void> {
    this.#timer = undefined
    this.#busy = true
    this.#again = false
    this.#startedAt = performance.now()
    const { signal } = this.#closing
    this.#data ??= kept.get(this.#path) as T | undefined
    const result = await read<T>(this.#path, signal).catch((error: unknown) => error as Error)
    if (signal.aborted) return
    this.#busy = false
    if (result instanceof Error)
      this.#report({ path: this.#path, data: this.#data, error: toApiError(result), loading: false })
    else {
      this.#data = result
      keep(this.#path, result)
      this.#report({ path: this.#path, data: result, loading: false })
    }
    if (this.#again) this.refresh()
  }
}

export function toApiError(error: Error): ApiError {
  return error instanceof ApiError ? error : new ApiError({ code: 'ERROR', message: error.message }, 0)
}
