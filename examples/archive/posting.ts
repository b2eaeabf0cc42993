/** Posts jobs so that none is lost when the connection breaks. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, type JobBoard, NotConnected, NotFound, OutcomeUnknown } from 'jobboard'
import type { ArchiveFlow, ArchiveStore } from './flow.ts'

export interface PostRequest {
  /** The uuid, chosen before the post, so that the job can be found when the answer was lost. */
  readonly uuid: string
  /** The name for people. */
  readonly name: string
  readonly store: ArchiveStore
}

export interface Poster {
  readonly board: Pick<JobBoard, 'post' | 'find'>
  readonly flow: ArchiveFlow
  /** The signal that ends the attempts. */
  readonly signal: AbortSignal
}

/** Resolves when the job is on the board, however long the board is away. @throws the signal's reason */
export async function post({ uuid, name, store }: PostRequest, { board, flow, signal }: Poster): Promise<Job> {
  while (true) {
    try {
      return await untilConnected(signal, () => board.post(flow, store, { uuid, name }))
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error
    }
    const posted = await untilConnected(signal, () => findOnBoard(board, uuid))
    if (posted) return posted
    // It was never posted, or is done already. Archiving a file twice does no harm, so post it once more.
  }
}

async function findOnBoard(board: Poster['board'], uuid: string): Promise<Job | undefined> {
  try {
    return await board.find(uuid)
  } catch (error) {
    if (error instanceof NotFound) return undefined
    throw error
  }
}

const FIRST_PAUSE = 100
const LONGEST_PAUSE = 5_000

/** Retries until there is a connection, with growing pauses: NotConnected means that nothing was done. */
export async function untilConnected<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    signal.throwIfAborted()
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof NotConnected)) throw error
    }
    await sleep(pause, undefined, { signal })
  }
}
