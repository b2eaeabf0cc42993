/**
 * A caller without work on a busy board: it leaves the view, polls the board, and finds every job for it that stays. The budget of
 * changes is never full again here, so nothing but a look at the board finds a job.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ChangeBudget } from '../../../src/board/claims/waiting/change-budget.ts'
import type { JobBoard } from '../../../src/board/index.ts'
import type { Posting } from '../../../src/board/model/posting/posting.ts'
import { nextSession } from '../../board/events.ts'
import { claimed } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import type { BoardCapabilities } from './capabilities.ts'

const DELIVERY = { timeout: 30_000 }
/** The number of jobs that are posted at once; the budget of a caller allows about three times as many. */
const AT_ONCE = 350

const mine = ({ name }: Posting) => name.startsWith('mine')

export function idlePollingContract({ open, openUnviewed, expire }: Place, capabilities: BoardCapabilities): void {
  beforeEach(() => void vi.spyOn(ChangeBudget.prototype, 'refillMs', 'get').mockReturnValue(600_000))
  afterEach(() => void vi.restoreAllMocks())

  /** Begins a claim on the board, and posts jobs that are not for it until it has left the view. */
  async function beginPolling(board: JobBoard, busy: JobBoard) {
    const claiming = board.claimNext({ accept: mine })
    // A test that fails before it awaits the claim reports its own error only.
    claiming.catch(() => undefined)
    await whenViewing(board)
    const post = () => busy.post('flow', {}, { name: 'other' })
    while (board.jobCount !== undefined) await Promise.all(Array.from({ length: AT_ONCE }, post))
    return { claiming }
  }

  test('it leaves the view, and finds a job that is posted after that and that nobody else takes', async () => {
    const [board, busy] = await Promise.all([openUnviewed({ who: 'idle' }), open()])
    const { claiming } = await beginPolling(board, busy)
    expect(board.jobCount).toBeUndefined()
    const job = await busy.post('flow', {}, { name: 'mine' })
    const [claim] = await claiming
    expect(claim).toMatchObject({ who: 'idle', run: 1, job: { uuid: job.uuid } })
    expect(await busy.findOwner(job)).toBe('idle')
  })

  test('a job that another owner had claimed before is found when that one gives it back', async () => {
    const [board, busy] = await Promise.all([openUnviewed(), open()])
    await busy.post('flow', {}, { name: 'mine' })
    const held = await claimed(busy, 'mine')
    const { claiming } = await beginPolling(board, busy)
    await held.abandon()
    const [claim] = await claiming
    expect(claim).toMatchObject({ run: 2, job: { name: 'mine' } })
  })

  if (capabilities.resources)
    test('a job that waits for a resource is found, and claimed when the resource is released', async () => {
      const [board, busy] = await Promise.all([openUnviewed(), open()])
      const resources = { exclusive: ['disk'] }
      await busy.post('flow', {}, { name: 'holder', resources })
      const holder = await claimed(busy, 'holder')
      const { claiming } = await beginPolling(board, busy)
      const job = await busy.post('flow', {}, { name: 'mine', resources })
      // It views the board again, because changes show when the turn of the job comes.
      await whenViewing(board)
      expect(await busy.findOwner(job)).toBeUndefined()
      await holder.consume()
      expect((await claiming)[0].job.uuid).toBe(job.uuid)
    })

  test('the end of its session loses no job, whether it was posted before or after that', async () => {
    const [board, busy] = await Promise.all([openUnviewed(), open()])
    const { claiming } = await beginPolling(board, busy)
    const back = nextSession(board)
    const before = busy.post('flow', {}, { name: 'mine before' })
    await expire(board)
    const after = await busy.post('flow', {}, { name: 'mine after' })
    await back
    const first = await claiming
    const second = await board.claimNext({ accept: mine })
    const found = [...first, ...second].map(({ job }) => job.uuid)
    expect(found.toSorted()).toEqual([(await before).uuid, after.uuid].toSorted())
    for (const [claim] of [first, second]) await claim.consume()
  })

  test('what it has found is consumed as any other job, and it polls again after that', async () => {
    const [board, busy] = await Promise.all([openUnviewed(), open()])
    for (const name of ['mine once', 'mine twice']) {
      const { claiming } = await beginPolling(board, busy)
      const job = await busy.post('flow', {}, { name })
      const [claim] = await claiming
      expect(claim).toMatchObject({ run: 1, job: { name } })
      expect(claim.lost.aborted).toBe(false)
      await claim.consume()
      expect(await job.wait()).toBe('COMPLETE')
    }
  })
}

async function whenViewing(board: JobBoard): Promise<void> {
  await vi.waitFor(() => expect(board.jobCount).toBeDefined(), DELIVERY)
}
