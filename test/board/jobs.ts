/** Looking at jobs, and getting them into the state that a test is about. */
import type { Claim, Job, JobBoard, JobsOptions } from '../../src/board/index.ts'
import { PayloadTooLarge } from '../../src/core/errors.ts'

/** Everything committed before this call is in the board's view when it resolves. */
export async function refresh(board: JobBoard): Promise<void> {
  await namesOn(board)
}

/** As everybody who looks now would see them. */
export async function namesOn(board: JobBoard, options: JobsOptions = {}): Promise<string[]> {
  const names: string[] = []
  for await (const job of board.jobs({ ensureFresh: true, ...options })) names.push(job.name)
  return names
}

export async function claimed(board: JobBoard, name: string): Promise<Claim> {
  const [claim] = await board.claimNext({ accept: (posting) => posting.name === name })
  return claim
}

/** Claims so many jobs: not all of them may be seen, or free, at once. */
export async function claimAll(board: JobBoard, jobs: number): Promise<[Claim, ...Claim[]]> {
  const claims: Claim[] = []
  while (claims.length < jobs) claims.push(...(await board.claimNext({ max: jobs - claims.length })))
  const [first, ...others] = claims
  if (!first) throw new Error('no job was to be claimed')
  return [first, ...others]
}

/** Posts the largest job that the board takes, with a text of a length within the range. */
export async function fillTo(board: JobBoard, range: { from: number; to: number }): Promise<Job> {
  let { from, to } = range
  let largest = await board.post('flow', { text: 'x'.repeat(from) })
  while (to - from > 1) {
    const length = Math.floor((from + to) / 2)
    const larger = await board.post('flow', { text: 'x'.repeat(length) }).catch((error: unknown) => {
      if (error instanceof PayloadTooLarge) return undefined
      throw error
    })
    if (larger) {
      await (await board.claim(largest)).consume()
      largest = larger
      from = length
    } else to = length
  }
  return largest
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
