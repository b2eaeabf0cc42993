/** Claims of a board whose view is closed or being opened: what is done to them elsewhere is noticed, and reported once. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../../src/board/backends/memory/index.ts'
import type { BackendSink, JobStatus } from '../../../src/board/contract/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { jobIdFor } from '../boards.ts'
import { recordEvents, whenLost } from '../events.ts'
import { overrideRole } from '../override-role.ts'

/** The memory backend, which has gaps when a test says so. */
class GappyBackend extends MemoryBackend {
  #sink: BackendSink | undefined

  constructor(...args: ConstructorParameters<typeof MemoryBackend>) {
    super(...args)
    overrideRole(this, 'session', (session) => ({
      open: (sink, options) => {
        this.#sink = sink
        return session.open(sink, options)
      },
    }))
  }

  reportGap(): void {
    this.#sink?.gap()
  }
}

async function boardWithClaim() {
  const name = randomUUID()
  const space = memorySpace(name)
  const backend = new GappyBackend({ uri: `memory:${name}`, space })
  const board = new JobBoard(backend, { who: 'owner' })
  await boardInternals(board).open()
  const job = await board.post('flow', {}, { name: 'job' })
  const [claim] = await board.claimNext()
  boardInternals(board).closeUnusedView()
  expect(board.jobCount).toBeUndefined()
  return { backend, space, board, job, claim }
}

/** Makes the backend answer with this status of the job, once for each hint. */
function answerWith(backend: MemoryBackend, statusOf: (current: JobStatus) => JobStatus): void {
  overrideRole(backend, 'changes', (changes) => ({
    follow: async (ids) => (await changes.follow(ids)).map(statusOf),
  }))
}

test('a claim that was taken away, and granted again, between two looks is lost', async () => {
  const { backend, board, claim } = await boardWithClaim()
  const lost = whenLost(claim)
  answerWith(backend, (status) => (typeof status === 'string' ? status : { ...status, revision: status.revision + 2 }))
  backend.reportGap()
  expect(String(await lost)).toContain('claimed again')
  await board.close()
})

test('a status from before the claim takes nothing away', async () => {
  const { backend, board, claim } = await boardWithClaim()
  const asked = createDeferred()
  answerWith(backend, () => {
    asked.resolve()
    return { claimed: false, cancelled: false, revision: 0 }
  })
  backend.reportGap()
  await asked.promise
  await claim.consume()
  expect(claim.lost.aborted).toBe(false)
  await board.close()
})

test('a claim is lost that the first listing of a view does not show', async () => {
  const { backend, space, board, job, claim } = await boardWithClaim()
  const lost = whenLost(claim)
  // Nothing is reported of single jobs.
  backend.changes.follow = () => new Promise(() => undefined)
  await backend.changes.unfollow([jobIdFor(job)])
  space.removeRaw(jobIdFor(job))
  const events = recordEvents(board)
  await board.view()
  expect(String(await lost)).toContain('the claim was taken away')
  // Listeners receive nothing that was before.
  expect(events).toEqual([])
  await board.close()
})

test('a settlement while the view is opened is emitted once', async () => {
  const { backend, board, claim } = await boardWithClaim()
  const listed = createDeferred()
  overrideRole(backend, 'jobs', (jobs) => ({
    list: async () => {
      const listing = await jobs.list()
      await listed.promise
      return listing
    },
  }))
  const events = recordEvents(board)
  const view = board.view()
  await new Promise(setImmediate)
  await claim.abandon({ delay: '1h' })
  listed.resolve()
  using _view = await view
  expect(events).toEqual(['abandoned job'])
  await board.close()
})
