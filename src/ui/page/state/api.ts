/** Requests to the server's API. Paths are relative to the base of the page, so a proxy may serve it under any prefix. */
import type { WireProblem } from '../../wire/common.ts'
import { texts } from '../texts.ts'
import { BASE } from './base.ts'

/** The time within which a read must be answered. After a sleep of the machine, a connection can look open although its other end is gone. */
const READ_TIMEOUT_MS = 30_000

/** Whether a read has got no answer since the last call of {@link takeUnanswered}. */
let isUnanswered = false

/** A request that was refused or has not reached the server; then its code is `UNREACHABLE`. */
export class ApiError extends Error {
  readonly code: string
  readonly status: number

  constructor({ code, message }: WireProblem, status: number) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** Returns the URL of an endpoint. */
export function endpoint(path: string): string {
  return new URL(`api/v1/${path}`, BASE).href
}

/**
 * Returns the answer to a GET request: while a long board is read for the first time, with what is read so far.
 *
 * @throws ApiError; `UNREACHABLE` where there is no answer within 30 s
 */
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const reading = new AbortController()
  const abort = (): void => reading.abort()
  signal?.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(abort, READ_TIMEOUT_MS)
  try {
    return await request<T>(path, { signal: reading.signal, headers: { prefer: 'respond-async' } })
  } catch (error) {
    if (signal?.aborted || (error instanceof ApiError && error.status !== 0)) throw error
    isUnanswered = true
    throw new ApiError({ code: 'UNREACHABLE', message: texts.errors.unreachable }, 0)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

/** Returns whether a read has got no answer since the last call. Then the page reads again: no change of the board will make it do that. */
export function takeUnanswered(): boolean {
  const taken = isUnanswered
  isUnanswered = false
  return taken
}

/** Returns the answer to a POST request. @throws ApiError */
export function send<T>(path: string, body: object): Promise<T> {
  return request<T>(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

async function request<T>(path: string, init: RequestInit): Promise<T> {
  const url = endpoint(path)
  const response = await fetch(url, { ...init, cache: 'no-store', credentials: 'same-origin' }).catch(() => {
    throw new ApiError({ code: 'UNREACHABLE', message: texts.errors.unreachable }, 0)
  })
  if (response.ok) return (await response.json()) as T
  throw new ApiError(await problemOf(response), response.status)
}

/** Returns the problem that the server names; a proxy before it may have answered with anything. */
async function problemOf(response: Response): Promise<WireProblem> {
  const problem = (await response.json().catch(() => undefined)) as Partial<WireProblem> | undefined
  const { status } = response
  return { code: problem?.code ?? `HTTP_${status}`, message: problem?.message ?? texts.errors.status(status) }
}
