/** Waiting ends: by what was waited for, by its time, by a signal, by the board's end. */
import { describe, expect, test } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { InvalidState, Timeout } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { all, claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

export function endsContract({ open }: Place): void {
  describe('wait', () => {
    test('times out on a board without a job to claim', async () => {
      const board = await open()
      expect(await rejectionOf(board.wait({ timeout: 1 }))).toBeInstanceOf(Timeout)
      await board.claim(await board.post('flow', {}))
      expect(await rejectionOf(board.wait({ timeout: '1ms' }))).toBeInstanceOf(Timeout)
    })

    test("is woken by another board's posting, and by a job that is given back", async () => {
      const [here, there] = await Promise.all([open(), open()])
      const posted = here.wait({ timeout: '20s' })
      await there.post('flow', {})
      await posted
      const [claim] = await here.claimNext()
      const given = there.wait({ timeout: '20s' })
      await claim.abandon()
      await given
      await here.wait()
    })
  })

  describe("a job's wait", () => {
    test('reports how the job ended, wherever it did', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const jobs = [await here.post('flow', {}, { name: 'a' }), await here.post('flow', {}, { name: 'b' })]
      const ends = Promise.all(jobs.map((job) => job.wait({ timeout: '20s' })))
      await (await claimed(there, 'a')).consume()
      await (await claimed(there, 'b')).trash()
      expect(await ends).toEqual(['COMPLETE', 'TRASHED'])
      expect(await Promise.all(jobs.map((job) => job.wait()))).toEqual(['COMPLETE', 'TRASHED'])
    })

    test('times out, or stops by its signal, while the job is there', async () => {
      const board = await open()
      const job = await board.post('flow', {})
      expect(await rejectionOf(job.wait({ timeout: 1 }))).toBeInstanceOf(Timeout)
      const reason = new Error('enough')
      expect(await rejectionOf(job.wait({ signal: AbortSignal.abort(reason) }))).toBe(reason)
      await (await board.claim(job)).consume()
      expect(await job.wait({ timeout: 1 })).toBe('COMPLETE')
    })
  })

  describe('a signal', () => {
    test('stops claimNext and wait with its reason, and claims without one', async () => {
      const board = await open()
      const stop = new AbortController()
      const { signal } = stop
      const waiting = [rejectionOf(board.claimNext({ signal })), rejectionOf(board.wait({ signal }))]
      const claims = all(board.claims({ signal }))
      const reason = new Error('enough')
      stop.abort(reason)
      expect(await Promise.all(waiting)).toEqual([reason, reason])
      expect(await claims).toEqual([])
      expect(await rejectionOf(board.claimNext({ signal }))).toBe(reason)
    })

    test('that stopped one claimNext leaves the job to the next', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const stop = new AbortController()
      const stopped = rejectionOf(here.claimNext({ signal: stop.signal }))
      const goingOn = here.claimNext()
      stop.abort()
      await stopped
      await there.post('flow', {})
      expect((await goingOn)[0].run).toBe(1)
    })
  })

  describe('close', () => {
    test('ends whatever waits', async () => {
      const board = await open()
      const job = await board.post('flow', {})
      await board.claim(job)
      const waiting = [board.claimNext(), board.wait(), job.wait()].map(rejectionOf)
      const claims = all(board.claims())
      await board.close()
      for (const failure of await Promise.all(waiting)) expect(failure).toBeInstanceOf(InvalidState)
      expect(await claims).toEqual([])
      expect(await rejectionOf(job.wait())).toBeInstanceOf(InvalidState)
      expect(board.state).toBe('closed')
      expect(board.connected).toBe(false)
    })

    test('may be called as often as one likes, and by await using', async () => {
      await using board = await open()
      await Promise.all([board.close(), board.close()])
      await board.close()
    })

    test('lets what is under way finish', async () => {
      const [closing, other] = await Promise.all([open(), open()])
      const job = await closing.post('flow', {}, { name: 'first' })
      const claim = await closing.claim(job)
      const underWay = [closing.post('flow', {}, { name: 'second' }), claim.consume()]
      await closing.close()
      await Promise.all(underWay)
      expect(await namesOn(other)).toEqual(['second'])
    })

    const uses: [string, (board: JobBoard) => Promise<unknown>][] = [
      ['post', (board) => board.post('flow', {})],
      ['jobs', (board) => all(board.jobs())],
      ['wait', (board) => board.wait({ timeout: 1 })],
      ['find', (board) => board.find('00000000-0000-7000-8000-000000000000')],
      ['trashed', (board) => all(board.trashed())],
      ['registerEntity', async (board) => board.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })],
      ['entities', async (board) => board.entities('conductor')],
    ]
    test.each(uses)('makes %s an InvalidState', async (_, use) => {
      const board = await open()
      const job = await board.post('flow', {})
      await refresh(board)
      await board.close()
      expect(await rejectionOf(use(board))).toBeInstanceOf(InvalidState)
      expect(await rejectionOf(board.findOwner(job))).toBeInstanceOf(InvalidState)
      expect(await rejectionOf(board.consume(job))).toBeInstanceOf(InvalidState)
    })
  })
}
