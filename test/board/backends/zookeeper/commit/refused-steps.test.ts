/**
 * A refused transaction names one step only. What it means is proven by what is on the board, also where another board acted
 * between the look and the transaction.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JobBoard } from '../../../../../src/board/index.ts'
import { createDeferred } from '../../../../../src/core/async/abort.ts'
import { ClaimLost, Duplicate, NotFound } from '../../../../../src/core/errors.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { jobIdFor, type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'
import { rejectionOf } from '../../../events.ts'
import { all, refresh } from '../../../jobs.ts'
import { ProxiedBoard } from '../../../proxied-board.ts'
import { BareBackend, postingOf } from '../bare-backends.ts'

describe.skipIf(!zookeeperHosts)('between the look of one board and its transaction', () => {
  let setup: ProxiedBoard

  beforeAll(async () => {
    setup = await ProxiedBoard.set()
  })

  afterAll(async () => {
    await setup?.[Symbol.asyncDispose]()
  })

  /** Begins `late` on the board, which hears of `first`, done by another, only when its own request is on its way. */
  async function overtaken<T>({ first, late }: { first: () => Promise<unknown>; late: () => Promise<T> }): Promise<T> {
    const { proxy, board } = setup
    await refresh(board)
    const heard = createDeferred()
    proxy.manner = { until: heard.promise }
    try {
      await first()
      const sent = proxy.nextRequest()
      const doing = late()
      doing.catch(() => undefined)
      await sent
      heard.resolve()
      return await doing
    } finally {
      heard.resolve()
      proxy.manner = {}
    }
  }

  const cancelRequests = async () => (await setup.place.observer.getChildren(`${setup.place.path}/.cancel`)).names

  const waiting = async (board: JobBoard) => {
    const job = await board.post('flow', {})
    await refresh(setup.board)
    return { here: await setup.board.find(job.uuid), there: await setup.other.find(job.uuid) }
  }

  test('a job that another trashed cannot be cancelled: it has left', async () => {
    const { board, other } = setup
    const { here, there } = await waiting(other)
    const failure = rejectionOf(
      overtaken({ first: () => other.cancel(there), late: () => board.cancel(here, { reason: 'late' }) }),
    )
    expect(await failure).toBeInstanceOf(NotFound)
    expect((await all(other.trashed())).filter(({ uuid }) => uuid === here.uuid)).toHaveLength(1)
  })

  test('nor can one that another claimed and consumed, or claimed and trashed', async () => {
    const { board, other } = setup
    for (const end of ['consume', 'trash'] as const) {
      const { here, there } = await waiting(other)
      const first = async () => (await other.claim(there))[end]()
      expect(await rejectionOf(overtaken({ first, late: () => board.cancel(here) }))).toBeInstanceOf(NotFound)
    }
    expect(await cancelRequests()).toEqual([])
  })

  test.each(['consume', 'trash'] as const)(
    'a cancel request that comes while its job ends (%s) is not left behind',
    async (end) => {
      const { board, other } = setup
      const { here, there } = await waiting(other)
      const claim = await board.claim(here)
      await refresh(other)
      await overtaken({ first: () => other.cancel(there), late: () => claim[end]() })
      expect(await cancelRequests()).toEqual([])
    },
  )
})

describe.skipIf(!zookeeperHosts)('what was not known when it was asked for', () => {
  const discarded = (id: string) => {
    return { id, revision: 0, posting: postingOf(), cancelRequested: false, who: 'who', reason: 'test' }
  }

  async function trashedBefore(place: ZooKeeperPlace): Promise<string> {
    await using board = await place.open()
    const job = await board.post('flow', {})
    await board.cancel(job)
    return jobIdFor(job)
  }

  test('a removal of a job that is in the trash by now is NotFound; of one that is in both places, Duplicate', async () => {
    await using place = await zookeeperPlace()
    await using bare = await BareBackend.open(place)
    const id = await trashedBefore(place)
    await expect(bare.backend.trash.discard(discarded(id))).rejects.toThrow(NotFound)
    await place.observer.create(`${place.path}/${id}`, Buffer.alloc(0))
    await expect(bare.backend.trash.discard(discarded(id))).rejects.toThrow(Duplicate)
  })

  test('a claim whose job another has moved into the trash by hand is lost when it is to be trashed', async () => {
    await using place = await zookeeperPlace()
    await using bare = await BareBackend.open(place)
    await bare.backend.jobs.post({ posting: postingOf() })
    const [id = ''] = await place.jobNodes()
    const posting = postingOf()
    const [granted] = await bare.backend.claims.claim([{ id, revision: 0, who: 'who', posting }])
    if (!granted || 'error' in granted) throw new Error('it was free')
    await place.observer.delete(`${place.path}/${id}`)
    await place.observer.create(`${place.path}/.trash/${id}`, Buffer.alloc(0))
    const { session, revision } = granted.value
    const settling = bare.backend.claims.settle({
      ...{ kind: 'trash', id, who: 'who', posting, session, revision, cancelRequested: false, reason: 'test' },
    })
    await expect(settling).rejects.toThrow(ClaimLost)
  })

  test('a folder of the board that is not there is no proof that the job has left', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const job = await board.post('flow', {})
    await (await board.claim(job)).abandon()
    await place.observer.delete(`${place.path}/.cancel`)
    const failure = await rejectionOf(board.cancel(job))
    expect(failure).not.toBeInstanceOf(NotFound)
    expect(String(failure)).toContain('.cancel')
  })
})
