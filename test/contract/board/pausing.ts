/** A paused board grants nothing to anybody, takes everything else, and stays paused until somebody resumes it. */
import { expect, test } from 'vitest'
import type { Claim, JobBoard } from '../../../src/board/index.ts'
import { Timeout, Unclaimable } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { all, claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

export function pausingContract({ open }: Place): void {
  async function nobodyClaims(boards: readonly JobBoard[], uuid: string): Promise<void> {
    for (const board of boards) {
      const failure = await rejectionOf(board.claim(await board.find(uuid)))
      expect(failure).toBeInstanceOf(Unclaimable)
      expect(String(failure)).toContain('pause')
      expect(await rejectionOf(board.wait({ timeout: 1 }))).toBeInstanceOf(Timeout)
    }
  }

  test('from pause on no owner claims, on any board, also on one that is opened later', async () => {
    const boards = await Promise.all([open(), open(), open()])
    const [here] = boards
    const job = await here.post('flow', {})
    for (const board of boards) await board.find(job.uuid)
    expect(here.paused).toBe(false)
    await here.pause()
    expect(here.paused).toBe(true)
    // At once, whether or not the others have heard of it.
    const tried = await Promise.all(boards.map((board) => rejectionOf(board.claim(job))))
    for (const failure of tried) expect(failure).toBeInstanceOf(Unclaimable)
    boards.push(await open())
    expect(boards.at(-1)?.paused).toBe(true)
    await Promise.all(boards.map(refresh))
    expect(boards.map(({ paused }) => paused)).toEqual([true, true, true, true])
    await nobodyClaims(boards, job.uuid)
    expect(job).toMatchObject({ state: 'UNCLAIMED', runs: 0 })
  })

  test('in the middle of claims by many, none is granted after pause has resolved', async () => {
    const boards = await Promise.all(Array.from({ length: 3 }, () => open()))
    const [here] = boards
    const finished = new AbortController()
    let newest = 0n
    const work = async (board: JobBoard) => {
      for await (const claim of board.claims({ signal: finished.signal })) {
        if (claim.fence > newest) newest = claim.fence
        await claim.abandon()
      }
    }
    for (let number = 0; number < 6; number++) await here?.post('flow', {}, { name: `${number}` })
    const working = boards.flatMap((board) => [work(board), work(board)])
    for (let round = 0; round < 5; round++) {
      const asker = boards[round % 3] ?? (await open())
      await asker.pause()
      // What was granted before has been answered and given back when all of these see nothing claimed.
      let held = ['']
      while (held.length > 0) {
        const [all, unclaimed] = [await namesOn(asker), await namesOn(asker, { onlyUnclaimed: true })]
        held = all.filter((name) => !unclaimed.includes(name))
      }
      const before = newest
      // The others have heard of the pause by then.
      await Promise.all(boards.map((board) => refresh(board)))
      await Promise.all(boards.map((board) => rejectionOf(board.wait({ timeout: 5 }))))
      expect(newest).toBe(before)
      await asker.resume()
      await Promise.all(boards.map((board) => board.wait({ timeout: '20s' })))
    }
    finished.abort()
    await Promise.all(working)
  })

  test('what runs goes on and is settled, what is posted is there', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const claims: Claim[] = []
    for (const name of ['consumed', 'returned', 'trashed']) {
      await here.post('flow', {}, { name })
      claims.push(await claimed(there, name))
    }
    await here.pause()
    await refresh(there)
    const [consumed, returned, trashed] = claims
    expect(claims.map(({ lost }) => lost.aborted)).toEqual([false, false, false])
    await consumed?.consume()
    await returned?.abandon()
    await trashed?.trash()
    await there.post('flow', {}, { name: 'new' })
    expect(await namesOn(here, { onlyUnclaimed: true })).toEqual(['returned', 'new'])
    expect((await all(here.trashed())).map(({ name }) => name)).toEqual(['trashed'])
  })

  test('resume wakes all callers that wait, on every board, whichever board paused', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.pause()
    for (const name of ['a', 'b', 'c']) await here.post('flow', {}, { name })
    await refresh(there)
    const waiting = [here.claimNext(), there.claimNext()]
    const waited = [here.wait({ timeout: '20s' }), there.wait({ timeout: '20s' })]
    await there.resume()
    await Promise.all(waited)
    expect(await Promise.all(waiting)).toHaveLength(2)
    expect(await namesOn(here, { onlyUnclaimed: true })).toHaveLength(1)
    await Promise.all([here, there].map(refresh))
    expect([here.paused, there.paused]).toEqual([false, false])
  })

  test('the pause outlives everybody who knew of it', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {})
    await here.pause()
    await Promise.all([here.close(), there.close()])
    const later = await open()
    expect(later.paused).toBe(true)
    await nobodyClaims([later], job.uuid)
    await later.resume()
    expect((await later.claimNext())[0].run).toBe(1)
  })

  test('to pause what is paused, and to resume what is not, changes nothing', async () => {
    const board = await open()
    await board.resume()
    expect(board.paused).toBe(false)
    await board.pause()
    await board.pause()
    expect(board.paused).toBe(true)
    await Promise.all([board.resume(), board.resume()])
    expect(board.paused).toBe(false)
    await board.claim(await board.post('flow', {}))
  })

  test('says who has paused it, when and why, on every board', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    expect(await there.pauseOrigin()).toBeUndefined()
    await here.pause({ reason: 'the database moves', by: 'ada' })
    const later = await open()
    const ada = { by: 'ada', reason: 'the database moves', since: expect.any(Date) }
    expect(await later.pauseOrigin()).toEqual(ada)
    await there.pause()
    expect(await there.pauseOrigin()).toEqual({ by: 'there', since: expect.any(Date) })
    await there.resume()
    expect(await there.pauseOrigin()).toBeUndefined()
    expect(String(await rejectionOf(here.pause({ reason: 'x'.repeat(2_000) })))).toContain('at most 1000')
  })

  test('pauses and resumptions at the same time end in one of the two, the same for everybody', async () => {
    const boards = await Promise.all([open(), open(), open()])
    for (let round = 0; round < 5; round++) {
      await Promise.all(boards.map((board, index) => (index % 2 ? board.pause() : board.resume())))
      await Promise.all(boards.map(refresh))
      expect(new Set(boards.map(({ paused }) => paused)).size).toBe(1)
    }
  })
}
