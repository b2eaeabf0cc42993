/** A claim that changes between the moment at which it is read and the one at which it would be released: nothing else is released. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../../src/board/backends/memory/index.ts'
import type { Claim } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { Conflict, NotFound } from '../../../src/core/errors.ts'
import { rejectionOf } from '../events.ts'
import { all } from '../jobs.ts'
import { overrideRole } from '../override-role.ts'

/** The memory backend, with which something happens before a claim is released. */
class OvertakenBackend extends MemoryBackend {
  before: () => Promise<void> = async () => undefined

  constructor(...args: ConstructorParameters<typeof MemoryBackend>) {
    super(...args)
    overrideRole(this, 'claims', (claims) => ({
      release: async (request) => {
        await this.before()
        return claims.release(request)
      },
    }))
  }
}

async function setup(options: { readonly onOwnerLost?: 'fail' } = {}) {
  const name = randomUUID()
  const at = () => ({ uri: `memory:${name}`, space: memorySpace(name) })
  const backend = new OvertakenBackend(at())
  const operator = new JobBoard(backend, { who: 'operator' })
  const owner = new JobBoard(new MemoryBackend(at()), { who: 'owner' })
  await Promise.all([boardInternals(operator).open(), boardInternals(owner).open()])
  const job = await owner.post('flow', {}, options)
  const claim = await owner.claim(job)
  const found = await operator.find(job.uuid)
  const release = (happening: (claim: Claim) => Promise<unknown>) => {
    backend.before = async () => void (await happening(claim))
    return operator.release(found)
  }
  const close = () => Promise.all([operator.close(), owner.close()])
  return { release, owner, operator, job, claim, [Symbol.asyncDispose]: async () => void (await close()) }
}

test.each([
  ['was consumed', (claim: Claim) => claim.consume()],
  ['was trashed', (claim: Claim) => claim.trash()],
] as const)('a job that %s has left the board', async (_, end) => {
  await using at = await setup()
  const refused = await rejectionOf(at.release(end))
  expect(refused).toBeInstanceOf(NotFound)
  expect(String(refused)).toMatch(/it has left the board/)
})

test('a job that was given back is unclaimed, and its attempt is that of its owner', async () => {
  await using at = await setup()
  const refused = await rejectionOf(at.release((claim) => claim.abandon({ reason: 'shutdown' })))
  expect(refused).toBeInstanceOf(NotFound)
  expect(String(refused)).toMatch(/is unclaimed, so there is no claim to release/)
  const [claim] = await at.owner.claimNext()
  expect(claim.job.attempts).toMatchObject([{ ended: 'returned', reason: 'shutdown' }, { who: 'owner' }])
})

test('a job whose owner has died is unclaimed', async () => {
  await using at = await setup()
  const refused = await rejectionOf(at.release(() => at.owner.close()))
  expect(refused).toBeInstanceOf(NotFound)
  expect(String(refused)).toMatch(/is unclaimed/)
})

test('the next claim of the job is not released', async () => {
  await using at = await setup()
  let next: Claim | undefined
  const refused = await rejectionOf(
    at.release(async (claim) => {
      await claim.abandon()
      next = await at.owner.claim(at.job)
    }),
  )
  expect(refused).toBeInstanceOf(Conflict)
  expect(String(refused)).toMatch(/the claim has ended meanwhile, and run 2 of owner has it now; nothing was changed/)
  expect(next?.lost.aborted).toBe(false)
  await next?.consume()
})

test('a job that must not survive its owner is never claimable in between', async () => {
  await using at = await setup({ onOwnerLost: 'fail' })
  const events: string[] = []
  using _view = await at.owner.view()
  for (const kind of ['claimed', 'trashed'] as const) at.owner.on(kind, () => events.push(kind))
  const stop = new AbortController()
  const other = at.owner.claimNext({ signal: stop.signal }).catch(() => 'nothing')
  expect(await at.release(async () => undefined)).toEqual({ owner: 'owner', run: 1, trashed: true })
  stop.abort()
  expect(await other).toBe('nothing')
  expect(events).toEqual(['trashed'])
  expect(await all(at.operator.trashed())).toMatchObject([{ attempts: [{ who: 'owner' }] }])
})
