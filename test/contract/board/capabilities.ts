/** What a board cannot do is refused before anything is posted, and said by its name. */
import { expect, test } from 'vitest'
import type { PostOptions } from '../../../src/board/index.ts'
import { newUuid } from '../../../src/core/uuid.ts'
import { rejectionOf } from '../../board/events.ts'
import type { Place } from '../board.ts'

/** What the boards of a backend can do. A request for what is missing is refused. */
export interface BoardCapabilities {
  readonly keys: boolean
  readonly resources: boolean
  readonly delays: boolean
  /** Whether a job that is not started in time can expire. */
  readonly expiry: boolean
  /** Whether claims take slots and tokens of limits. */
  readonly limits: boolean
  /** Whether jobs can depend on others. */
  readonly dependencies: boolean
  /** Whether the board keeps a history of the jobs that have ended. */
  readonly history: boolean
  /** Whether the board counts the jobs of batches. */
  readonly batches: boolean
  /** Whether a claim can be taken away from its owner. */
  readonly release: boolean
}

const ASKING = {
  keys: { key: 'one' },
  resources: { resources: { shared: ['disk'] } },
  delays: { delay: '1h' },
  expiry: { expiresAfter: '1h' },
} as const satisfies Partial<Record<keyof BoardCapabilities, PostOptions>>

export function capabilitiesContract({ open }: Place, capabilities: BoardCapabilities): void {
  const names = Object.keys(ASKING) as (keyof typeof ASKING)[]
  test.each(names.map((name) => [name, capabilities[name] ? 'taken' : 'refused'] as const))(
    'a job that needs %s is %s',
    async (name, ending) => {
      const board = await open()
      const posting = board.post('flow', {}, ASKING[name])
      if (ending === 'taken') expect((await posting).state).toBe('UNCLAIMED')
      else
        expect(await rejectionOf(posting)).toMatchObject({ code: 'JOBBOARD_UNSUPPORTED_CAPABILITY', capability: name })
      expect(await board.countJobs()).toBe(ending === 'taken' ? 1 : 0)
    },
  )

  if (!capabilities.keys)
    test.each([
      { name: 'one', for: '1h' },
      { name: 'one', on: 'replace' },
    ] as const)('a job with the key %j is refused by name', async (key) => {
      const board = await open()
      expect(await rejectionOf(board.post('flow', {}, { key }))).toMatchObject({
        code: 'JOBBOARD_UNSUPPORTED_CAPABILITY',
        capability: 'keys',
      })
      expect(await board.countJobs()).toBe(0)
    })

  test(`a job after another one is ${capabilities.dependencies ? 'taken' : 'refused'}`, async () => {
    const board = await open()
    const first = await board.post('flow', {})
    const posting = board.post('flow', {}, { after: [first] })
    if (capabilities.dependencies) await posting
    else
      expect(await rejectionOf(posting)).toMatchObject({
        code: 'JOBBOARD_UNSUPPORTED_CAPABILITY',
        capability: 'dependencies',
      })
    expect(await board.countJobs()).toBe(capabilities.dependencies ? 2 : 1)
  })

  test(`a batch is ${capabilities.batches ? 'taken' : 'refused'}, and a job of one`, async () => {
    const board = await open()
    const creating = board.batch({ name: 'import' })
    if (capabilities.batches) await (await creating).post('flow', {})
    else
      for (const asking of [creating, board.batches(), board.post('flow', {}, { batch: newUuid() })])
        expect(await rejectionOf(asking)).toMatchObject({
          code: 'JOBBOARD_UNSUPPORTED_CAPABILITY',
          capability: 'batches',
        })
    expect(await board.countJobs()).toBe(capabilities.batches ? 1 : 0)
  })

  if (!(capabilities.history || capabilities.dependencies))
    test('reads of the history and of dependencies find nothing', async () => {
      const board = await open()
      const job = await board.post('flow', {})
      expect(await board.dependencies(job)).toEqual({ waitsFor: [], dependents: [] })
      await (await board.claim(job)).consume()
      expect(await board.history()).toEqual([])
      expect(await board.findEnded(job.uuid)).toBeUndefined()
    })

  test(`to give a job back with further resources is ${capabilities.resources ? 'taken' : 'refused, and the claim is kept'}`, async () => {
    const board = await open()
    const job = await board.post('flow', {})
    const claim = await board.claim(job)
    const amending = claim.amend({ resources: { shared: ['disk'] } }, 'its flow declares them')
    if (capabilities.resources) await amending
    else {
      expect(await rejectionOf(amending)).toMatchObject({
        code: 'JOBBOARD_UNSUPPORTED_CAPABILITY',
        capability: 'resources',
      })
      await claim.trash()
    }
    expect(job.state).toBe(capabilities.resources ? 'UNCLAIMED' : 'TRASHED')
  })

  test(`to release a claim is ${capabilities.release ? 'taken' : 'refused, and the claim is kept'}`, async () => {
    const board = await open()
    const job = await board.post('flow', {})
    const claim = await board.claim(job)
    const releasing = board.release(job)
    if (capabilities.release) await releasing
    else {
      expect(await rejectionOf(releasing)).toMatchObject({
        code: 'JOBBOARD_UNSUPPORTED_CAPABILITY',
        capability: 'release',
      })
      await claim.trash()
    }
    expect(job.state).toBe(capabilities.release ? 'UNCLAIMED' : 'TRASHED')
  })
}
