/** Refusals of a server that pass: a right that is missing for some time, a trigger that fails. */
import { expect } from 'vitest'
import type { JobBoard } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { nextEvent } from './events.ts'

/** @param refuse makes the server refuse every claim of these jobs, until the result is disposed */
export async function checkPassingRefusal(
  board: JobBoard,
  refuse: (jobs: readonly { readonly ref: string; readonly uuid: string }[]) => Promise<AsyncDisposable>,
): Promise<void> {
  const errors: Error[] = []
  board.on('error', ({ error }) => errors.push(error))
  const jobs = []
  for (let n = 1; n <= 4; n += 1) jobs.push(await board.post('flow', {}, { name: `job ${n}` }))
  const refusing = await refuse(jobs)
  const reported = nextEvent(board, 'error')
  const claiming = board.claimNext({ max: 4 })
  await reported
  // The refusals of one request are taken in together.
  const [first] = jobs
  if (!first) throw new Error('there is a job')
  expect(await board.waitingFor(first)).toMatchObject({ kind: 'refusal' })
  expect(boardInternals(board).claimFault).toBeInstanceOf(Error)
  await refusing[Symbol.asyncDispose]()
  const claims = await claiming
  while (claims.length < 4) claims.push(...(await board.claimNext({ max: 4 - claims.length })))
  expect(boardInternals(board).claimFault).toBeUndefined()
  expect(errors).toHaveLength(1)
}
