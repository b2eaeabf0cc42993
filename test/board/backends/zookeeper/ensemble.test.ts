/** A board on three servers: what followers tell, and when. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ClaimRequest } from '../../../../src/board/contract/index.ts'
import type { JobBoard } from '../../../../src/board/index.ts'
import { InvalidState, Unclaimable } from '../../../../src/core/errors.ts'
import { type Ensemble, startEnsemble } from '../../../support/ensemble.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { zookeeperPlace } from '../../boards.ts'
import { rejectionOf } from '../../events.ts'
import { namesOn, refresh } from '../../jobs.ts'
import { BareBackend, postingOf } from './bare-backends.ts'

describe.skipIf(!zookeeperHosts)('a board on an ensemble', () => {
  let ensemble: Ensemble
  /** Each server's hosts, the leader's first. */
  let leader: string
  let followers: string[]

  beforeAll(async () => {
    ensemble = await startEnsemble()
    leader = (await ensemble.leader()).hosts
    followers = (await ensemble.followers()).map(({ hosts }) => hosts)
  })

  afterAll(async () => {
    await ensemble.stop()
  })

  test('at a follower no answer to a claim that was refused overtakes the change that speaks against it', async () => {
    await using place = await zookeeperPlace(leader)
    await using slow = await BareBackend.open(place, { hosts: followers[0] ?? '' })
    await using quick = await BareBackend.open(place)
    let refused = 0
    for (let round = 0; round < 60; round++) {
      const posted = await Promise.all(
        Array.from({ length: 12 }, () => quick.backend.jobs.post({ posting: postingOf() })),
      )
      const choices = posted.flatMap((result): ClaimRequest[] => {
        if (!result.created) return []
        const { id = '', revision } = result
        return [{ id, revision, who: 'who', posting: postingOf() }]
      })
      expect(choices).toHaveLength(12)
      await slow.backend.changes.barrier()
      slow.changes.length = 0
      const stealing = quick.backend.claims.claim(choices.filter((_, index) => index % 2 === round % 2))
      const results = await slow.backend.claims.claim(choices)
      const told = new Set(slow.changes.map(({ kind, id }) => `${kind} ${id}`))
      results.forEach((result, index) => {
        if ('value' in result) return
        refused += 1
        expect(result.error).toBeInstanceOf(Unclaimable)
        expect(told).toContain(`updated ${choices[index]?.id}`)
      })
      await stealing
    }
    // Else nothing was seen of what this is about.
    expect(refused).toBeGreaterThan(50)
  })

  test('a pause at the leader stops at once who is connected to a follower', async () => {
    await using place = await zookeeperPlace(leader)
    await using boss = await place.open()
    await using worker = await place.openAt(followers[0] ?? '')
    for (let round = 0; round < 20; round++) {
      const job = await boss.post('flow', {}, { name: `${round}` })
      const seen = await worker.find(job.uuid)
      await boss.pause()
      expect(await rejectionOf(worker.claim(seen))).toBeInstanceOf(Unclaimable)
      expect(job.runs).toBe(0)
      await boss.resume()
      await (await boss.claim(job)).consume()
    }
  })

  test('a batch is the same at all servers, and the last two jobs that end at two of them end it once', async () => {
    await using place = await zookeeperPlace(leader)
    await using one = await place.openAt(followers[0] ?? '')
    await using two = await place.openAt(followers[1] ?? '')
    for (let round = 0; round < 20; round++) {
      const batch = await one.batch({ name: 'import', onDone: { flow: 'report' } })
      // The other server may not have it yet.
      const same = await two.findBatch(batch.uuid)
      const jobs = await Promise.all([batch.post('flow', {}, { name: 'a' }), same.post('flow', {}, { name: 'b' })])
      await batch.seal()
      expect(await rejectionOf(same.post('flow', {}))).toBeInstanceOf(InvalidState)
      const claims = await Promise.all(
        [one, two].map(async (board, n) => board.claim(await board.find(jobs[n]?.ref ?? ''))),
      )
      await Promise.all(claims.map((claim) => claim.consume()))
      expect(await same.wait({ timeout: '20s' })).toBe('done')
      expect(await same.progress()).toMatchObject({ total: 2, done: 2, generation: 1 })
      expect(await namesOn(two)).toEqual(['report'])
      const [claim] = await two.claimNext()
      await claim.consume()
    }
  })

  test('boards at all servers share the jobs: each is done once, and no two hold what is exclusive', async () => {
    const JOBS = 90
    await using place = await zookeeperPlace(leader)
    await using one = await place.openAt(leader)
    await using two = await place.openAt(followers[0] ?? '')
    await using three = await place.openAt(followers[1] ?? '')
    const done: string[] = []
    const held = new Set<string>()
    const finished = new AbortController()
    const work = async (board: JobBoard) => {
      for await (const claim of board.claims({ signal: finished.signal })) {
        const disk = `disk ${Number(claim.job.name) % 5}`
        expect(held).not.toContain(disk)
        held.add(disk)
        await board.findOwner(claim.job)
        held.delete(disk)
        await claim.consume()
        done.push(claim.job.name)
        if (done.length === JOBS) finished.abort()
      }
    }
    const names = Array.from({ length: JOBS }, (_, number) => `${number}`)
    const working = [one, two, three].flatMap((board) => [work(board), work(board)])
    const boards = [one, two, three]
    await Promise.all(
      names.map((name, number) => {
        return boards[number % 3]?.post('flow', {}, { name, resources: { exclusive: [`disk ${number % 5}`] } })
      }),
    )
    await Promise.all(working)
    expect(done.sort()).toEqual(names.sort())
    await Promise.all(boards.map(refresh))
    for (const board of boards) expect(await namesOn(board)).toEqual([])
    expect(await place.jobNodes()).toEqual([])
  })
})
