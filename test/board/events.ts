/** Waiting for what boards tell. */
import type { BoardEvents, Claim, JobBoard } from '../../src/board/index.ts'

/** The next event of the kind that fits. Call it before what makes the event happen. */
export function nextEvent<E extends keyof BoardEvents>(
  board: JobBoard,
  kind: E,
  fits: (event: BoardEvents[E]) => boolean = () => true,
): Promise<BoardEvents[E]> {
  return new Promise((resolve) => {
    const off = board.on(kind, (event) => {
      if (!fits(event)) return
      off()
      resolve(event)
    })
  })
}

/** Resolves when the board has lost its session and has another. Before that its connection may break and come back. */
export function nextSession(board: JobBoard): Promise<void> {
  return new Promise((resolve) => {
    let lost = false
    const off = board.on('state', ({ state }) => {
      lost ||= state === 'lost'
      if (!lost || state !== 'connected') return
      off()
      resolve()
    })
  })
}

/** Resolves when the board is connected again: in the same session, unless that was lost. */
export async function nextConnection(board: JobBoard): Promise<void> {
  await nextEvent(board, 'state', ({ state }) => state === 'connected')
}

const KINDS = ['posted', 'claimed', 'abandoned', 'consumed', 'trashed'] as const

/** Everything told about jobs from now on, as `kind name`. */
export function recordEvents(board: JobBoard): string[] {
  const history: string[] = []
  for (const kind of KINDS) board.on(kind, ({ job }) => history.push(`${kind} ${job.name}`))
  return history
}

/** Resolves with the reason when the claim is lost. */
export function whenLost(claim: Claim): Promise<unknown> {
  return whenAborted(claim.lost)
}

/** The error that a promise rejects with. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it was expected to fail')
    },
    (error: unknown) => error,
  )
}

/** Resolves with the reason when the signal fires, or has fired. */
export function whenAborted(signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return Promise.resolve(signal.reason)
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }))
}
