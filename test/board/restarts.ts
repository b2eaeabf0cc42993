/** A server that is killed and comes back with its data: what has to become of the boards on it, whatever it is. */
import { expect } from 'vitest'
import type { Claim, JobBoard } from '../../src/board/index.ts'
import { nextEvent, whenLost } from './events.ts'
import { refresh } from './jobs.ts'

export interface Restartable {
  kill(): Promise<void>
  restart(): Promise<void>
}

const JOBS = 300

/** It is killed twice under load, and every job is done, once. @param open boards whose sessions outlast a restart */
export async function restartedUnderLoad(server: Restartable, open: () => Promise<JobBoard>): Promise<void> {
  await using poster = await open()
  await using one = await open()
  await using two = await open()
  const done: string[] = []
  const restartAt = new Set([JOBS / 5, (JOBS * 3) / 5])
  let restarts = 0
  // One after the other: a server that is killed while it starts has not failed to.
  let restarting = Promise.resolve()
  const restart = async () => {
    await server.restart()
    restarts += 1
  }
  const finished = new AbortController()
  const work = async (board: JobBoard) => {
    for await (const claim of board.claims({ signal: finished.signal })) {
      expect(await claim.perform(() => undefined)).toBe('consumed')
      done.push(claim.job.name)
      if (restartAt.has(done.length)) restarting = restarting.then(restart)
      if (done.length === JOBS) finished.abort()
    }
  }
  const post = async () => {
    for (let number = 0; number < JOBS; number++) await poster.post('flow', {}, { name: `job ${number}` })
  }
  await Promise.all([post(), work(one), work(two), work(one)])
  await restarting
  expect(restarts).toBe(2)
  expect(done.sort()).toEqual(Array.from({ length: JOBS }, (_, number) => `job ${number}`).sort())
  await refresh(one)
  expect(await one.countJobs()).toBe(0)
}

/**
 * A loop of one's own goes on where its server is away for less, or for more, than the session lasts.
 *
 * @returns how each claim ended
 */
export async function checkLoopOverRestart(
  board: JobBoard,
  { server, away }: { server: Restartable; away: string },
): Promise<string[]> {
  for (const name of ['first', 'second']) await board.post('flow', {}, { name })
  const ends: string[] = []
  let restarted: Promise<void> | undefined
  const work = async (claim: Claim) => {
    if (restarted !== undefined) return
    const disconnected = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
    const lost = whenLost(claim)
    await server.kill()
    await disconnected
    restarted = (away === 'less' ? Promise.resolve() : lost).then(() => server.restart())
  }
  for await (const claim of board.claims()) {
    ends.push(await claim.perform(() => work(claim)))
    if (ends.filter((end) => end === 'consumed').length === 2) break
  }
  await restarted
  return ends
}
