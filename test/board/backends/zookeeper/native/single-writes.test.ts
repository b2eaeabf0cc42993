/**
 * What takes several steps may end between any two of them: by a death, a lost answer, the end of a session. Whatever is left
 * then, every board goes on with it, those over the C client and those over our own.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import type { JobBoard } from '../../../../../src/board/index.ts'
import { JobboardError, OutcomeUnknown } from '../../../../../src/core/errors.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { COMPILING_LIMIT_MS, ensureNativePackage, nativeLeftOut } from '../../../../support/native-package.ts'
import { jobIdFor, type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'
import { rejectionOf } from '../../../events.ts'
import { all, claimed, namesOn, refresh } from '../../../jobs.ts'
import { type FaultyDriver, faultyDriver } from '../faulty-driver.ts'
import { nativeBoardAt } from './boards.ts'

/** How a job stands for those who come later. */
type Standing =
  | { readonly is: 'nowhere' | 'trashed' }
  /** The run that the next claim has, and how the attempt before it ended. */
  | { readonly is: 'claimable'; readonly run: number; readonly ended?: 'returned' | 'died' }

interface Operation {
  /** Brings the job to where the operation begins, and resolves to the operation. */
  readonly prepare: (board: JobBoard) => Promise<() => Promise<unknown>>
  readonly writes: number
  /** The number of the write that decides. */
  readonly decidedBy: number
  readonly before: Standing
  readonly after: Standing
}

const NEVER_RUN = { is: 'claimable', run: 1 } as const
const DIED = { is: 'claimable', run: 2, ended: 'died' } as const
const job = { name: 'job' } as const

const OPERATIONS: Readonly<Record<string, Operation>> = {
  post: {
    prepare: async (board) => () => board.post('flow', {}, job),
    writes: 1,
    decidedBy: 1,
    before: { is: 'nowhere' },
    after: NEVER_RUN,
  },
  claim: {
    prepare: async (board) => {
      const posted = await board.post('flow', {}, job)
      return () => board.claim(posted)
    },
    // The third raises the fence: it is the first claim on a new board.
    writes: 3,
    decidedBy: 2,
    before: NEVER_RUN,
    after: DIED,
  },
  consume: {
    prepare: async (board) => {
      const claim = await board.claim(await board.post('flow', {}, job))
      return () => claim.consume()
    },
    writes: 2,
    decidedBy: 1,
    before: DIED,
    after: { is: 'nowhere' },
  },
  abandon: {
    prepare: async (board) => {
      const claim = await board.claim(await board.post('flow', {}, job))
      return () => claim.abandon()
    },
    writes: 2,
    decidedBy: 1,
    before: DIED,
    after: { is: 'claimable', run: 2, ended: 'returned' },
  },
  trash: {
    prepare: async (board) => {
      const claim = await board.claim(await board.post('flow', {}, job))
      return () => claim.trash({ reason: 'enough' })
    },
    writes: 2,
    decidedBy: 1,
    before: DIED,
    after: { is: 'trashed' },
  },
  'trash, of a job that was cancelled': {
    prepare: async (board) => {
      const claim = await board.claim(await board.post('flow', {}, job))
      await board.cancel(claim.job)
      return () => claim.trash({ reason: 'enough' })
    },
    writes: 3,
    decidedBy: 1,
    before: DIED,
    after: { is: 'trashed' },
  },
  'cancel, of a job that was never run': {
    prepare: async (board) => {
      const posted = await board.post('flow', {}, job)
      return () => board.cancel(posted)
    },
    writes: 3,
    decidedBy: 2,
    before: NEVER_RUN,
    after: { is: 'trashed' },
  },
}

describe.skipIf(!zookeeperHosts || nativeLeftOut)('between the steps of an operation over the C client', () => {
  beforeAll(ensureNativePackage, COMPILING_LIMIT_MS)
  interface Scene {
    readonly place: ZooKeeperPlace
    readonly board: JobBoard
    readonly driver: FaultyDriver
    /** One of each kind: what the board did is seen by both. */
    readonly heirs: readonly JobBoard[]
  }

  async function among(work: (scene: Scene) => Promise<void>): Promise<void> {
    await using place = await zookeeperPlace()
    const driver = faultyDriver()
    const board = await nativeBoardAt(place, { who: 'first', wrap: driver.wrap })
    await using ours = await place.open()
    await using native = await nativeBoardAt(place)
    try {
      await work({ place, board, driver, heirs: [ours, native] })
    } finally {
      // Not the board: what hangs in it would never end.
      await driver.close()
    }
  }

  /** The job stands so for every heir, and the one of this number brings it to its end. */
  async function expectStanding({ place, heirs }: Scene, standing: Standing, finisher: number): Promise<void> {
    const heir = heirs[finisher]
    if (!heir) throw new Error('there are two')
    for (const board of heirs) {
      const names = await namesOn(board, { onlyUnclaimed: true })
      expect(names).toEqual(standing.is === 'claimable' ? ['job'] : [])
    }
    let isTrashed = standing.is === 'trashed'
    if (standing.is === 'claimable') {
      const claim = await claimed(heir, 'job')
      expect(claim.run).toBe(standing.run)
      const before = claim.job.attempts.at(-2)
      if (standing.ended === 'died') expect(before).not.toHaveProperty('ended')
      else expect(before?.ended).toBe(standing.ended)
      // A job that was cancelled before its claim is not consumed.
      isTrashed = claim.cancelled.aborted
      await (isTrashed ? claim.trash() : claim.consume())
    }
    const trashed = isTrashed ? ['job'] : []
    for (const board of [heir, ...heirs]) expect((await all(board.trashed())).map(({ name }) => name)).toEqual(trashed)
    for (const board of heirs) expect(await namesOn(board)).toEqual([])
    // Where our own client looks, nothing is left behind on the board itself.
    expect(await place.trashNodes()).toHaveLength(trashed.length)
    expect(await place.jobNodes()).toEqual([])
  }

  for (const [name, operation] of Object.entries(OPERATIONS)) {
    describe(name, () => {
      const { prepare, writes, decidedBy, before, after } = operation

      test(`takes ${writes} writes`, () =>
        among(async (scene) => {
          const operate = await prepare(scene.board)
          scene.driver.arm('answer-lost', Number.POSITIVE_INFINITY)
          await operate()
          expect(scene.driver.writes).toBe(writes)
        }))

      // One more than there are: it dies behind the last.
      const deaths = Array.from({ length: writes + 1 }, (_, index) => index + 1)
      test.each(deaths.flatMap((at) => [0, 1].map((finisher) => [at, finisher] as const)))(
        'a death before write %d leaves what heir %d goes on with',
        (at, finisher) =>
          among(async (scene) => {
            const { driver, board } = scene
            const operate = await prepare(board)
            driver.arm('dies', at)
            const operated = operate()
            operated.catch(() => undefined)
            await (at > writes ? operated : driver.struck)
            // What a server sees of a death in the end: the session is over, and no write came before.
            await driver.close()
            await expectStanding(scene, at > decidedBy ? after : before, finisher)
          }),
      )

      const numbers = Array.from({ length: writes }, (_, index) => index + 1)
      test.each(numbers)('that the answer to write %d is lost changes nothing', (at) =>
        among(async (scene) => {
          const operate = await prepare(scene.board)
          scene.driver.arm('answer-lost', at)
          await operate()
          await scene.driver.struck
          await scene.board.close()
          await expectStanding(scene, after, 0)
        }),
      )

      test.each(numbers)('that write %d does not arrive is found out', (at) =>
        among(async (scene) => {
          const operate = await prepare(scene.board)
          scene.driver.arm('request-lost', at)
          // Of a post alone nobody can tell: it may have been done and be gone.
          if (name === 'post') expect(await rejectionOf(operate())).toBeInstanceOf(OutcomeUnknown)
          else await operate()
          await scene.driver.struck
          await scene.board.close()
          await expectStanding(scene, name === 'post' ? before : after, 0)
        }),
      )

      test.each(numbers)('that the session ends with the answer to write %d is said, or harmless', (at) =>
        among(async (scene) => {
          const operate = await prepare(scene.board)
          scene.driver.arm('session-lost', at)
          const failure = await operate().then(
            () => undefined,
            (error: unknown) => error,
          )
          await scene.driver.struck
          // Of the one that decides it may be found out all the same: a posting tells who wrote it.
          if (at < decidedBy || failure !== undefined) expect(failure).toBeInstanceOf(JobboardError)
          if (at > decidedBy) expect(failure).toBeUndefined()
          await scene.board.close()
          await expectStanding(scene, at >= decidedBy ? after : before, 1)
        }),
      )
    })
  }

  test('a claim that meets a pause is taken back whole, wherever it dies meanwhile', async () => {
    // Lock, posting; then the gate is seen to be closed: posting as it was, lock away.
    for (const at of [3, 4, 5]) {
      await among(async (scene) => {
        const { board, driver, heirs, place } = scene
        const posted = await board.post('flow', {}, job)
        await refresh(board)
        driver.arm('dies', at)
        await place.witness.setData(`${place.path}/.gate`, Buffer.from('{"paused":true}'))
        const refused = rejectionOf(board.claim(posted))
        refused.catch(() => undefined)
        await Promise.race([driver.struck, refused])
        await driver.close()
        await heirs[0]?.resume()
        await refresh(heirs[1] ?? board)
        const run = driver.writes > 0 && at === 3 ? 2 : 1
        await expectStanding(scene, { is: 'claimable', run, ...(run === 2 ? { ended: 'died' } : {}) }, at % 2)
      })
    }
  })

  test('a lock that cannot be taken away yet is gone in the end, and keeps its job from being claimed until then', () =>
    among(async ({ board, driver, place, heirs: [, heir] }) => {
      const posted = await board.post('flow', {}, job)
      const claim = await board.claim(posted)
      driver.arm('held', 2)
      const abandoning = claim.abandon()
      await driver.struck
      expect(await place.jobNodes()).toEqual([jobIdFor(posted), `${jobIdFor(posted)}.lock`])
      const again = heir?.claimNext()
      await refresh(heir ?? board)
      driver.letGo()
      await abandoning
      expect((await again)?.[0].run).toBe(2)
    }))
})
