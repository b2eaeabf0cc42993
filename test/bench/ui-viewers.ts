/** People who look at a dashboard: each has a stream of changes open, and reads the page again when something has changed, as the page does. */
import type { Dashboard } from 'jobboard/ui'

const API = 'http://127.0.0.1/api/v1/boards/main'
/** The first page of the list of jobs. */
export const ONE_PAGE = 'api/v1/boards/main/jobs'
/** Who has signed in, and which boards there are. */
export const SESSION = 'api/v1/session'
/** A page reads again at most once a second. */
const PAUSE = 1_000

export interface Viewers extends AsyncDisposable {
  /** The number of messages that all have received. */
  readonly messages: number
}

/** Resolves when all have their stream. */
export async function startViewers(served: Dashboard, count: number): Promise<Viewers> {
  const leaving = new AbortController()
  const counted = { messages: 0 }
  const looking = await Promise.all(Array.from({ length: count }, () => startViewer(served, leaving.signal, counted)))
  return {
    get messages() {
      return counted.messages
    },
    [Symbol.asyncDispose]: async () => {
      leaving.abort()
      await Promise.allSettled(looking.map(({ done }) => done))
    },
  }
}

async function startViewer(
  served: Dashboard,
  signal: AbortSignal,
  counted: { messages: number },
): Promise<{ readonly done: Promise<void> }> {
  const response = await served.fetch(new Request(`${API}/events`, { signal }), { address: '127.0.0.1' })
  if (!response.ok || !response.body)
    throw new Error(`the stream was refused: ${response.status} ${await response.text()}`)
  await readPages(served)
  return { done: follow(response.body, { served, signal, counted }) }
}

async function follow(
  body: ReadableStream<Uint8Array>,
  {
    served,
    signal,
    counted,
  }: { readonly served: Dashboard; readonly signal: AbortSignal; readonly counted: { messages: number } },
): Promise<void> {
  let next = 0
  for await (const chunk of body) {
    if (signal.aborted) return
    if (!new TextDecoder().decode(chunk).includes('data:')) continue
    counted.messages += 1
    if (performance.now() < next) continue
    next = performance.now() + PAUSE
    await readPages(served)
  }
}

/** Reads what the overview and the list of jobs show. */
async function readPages(served: Dashboard): Promise<void> {
  for (const path of ['overview', 'jobs']) {
    const response = await served.fetch(new Request(`${API}/${path}`), { address: '127.0.0.1' })
    await response.text()
  }
}
