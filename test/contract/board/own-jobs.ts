/** Who posts a job may claim it before anybody else does. */
import { expect, test } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { Duplicate, InvalidArgument, NotFound, Timeout, UnsupportedCapability } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { all, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import type { BoardCapabilities } from './capabilities.ts'

export function ownJobsContract({ open }: Place, { delays, keys, resources }: BoardCapabilities): void {
  if (!delays) {
    test('is not to be had where others cannot be made to leave a job alone', async () => {
      const board = await open()
      expect(await rejectionOf(board.postAndClaim('flow', {}))).toBeInstanceOf(UnsupportedCapability)
      expect(await board.countJobs()).toBe(0)
    })
    return
  }

  test('it is its poster’s, however many others wait for a job', async () => {
    const [here, ...others] = await Promise.all([open({ who: 'here' }), open(), open()])
    const stop = new AbortController()
    const taken = others.map((board) => board.claimNext({ signal: stop.signal }).catch(() => 'nothing'))
    const claims = await Promise.all(Array.from({ length: 20 }, () => here.postAndClaim('flow', { n: 1 })))
    for (const claim of claims) expect(claim).toMatchObject({ who: 'here', run: 1 })
    await Promise.all(claims.map((claim) => claim.consume()))
    stop.abort()
    expect(await Promise.all(taken)).toEqual(['nothing', 'nothing'])
    expect(await here.countJobs()).toBe(0)
  })

  test('given back, any owner can claim it at once, and so it is when its owner dies', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await (await here.postAndClaim('flow', {}, { name: 'given back' })).abandon()
    const [first] = await there.claimNext()
    expect(first.job.name).toBe('given back')
    await here.postAndClaim('flow', {}, { name: 'left behind' })
    await here.close()
    const [second] = await there.claimNext()
    expect(second).toMatchObject({ run: 2, job: { name: 'left behind' } })
  })

  if (resources) {
    test('waits for its resources, and others for those that it holds', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const disk = { resources: { exclusive: ['disk'] } }
      await there.post('flow', {}, disk)
      const [held] = await there.claimNext()
      await refresh(here)
      const waiting = here.postAndClaim('flow', {}, { name: 'mine', ...disk })
      await untilOnBoard(there, 2)
      await held.consume()
      const claim = await waiting
      expect(claim.job.name).toBe('mine')
      await refresh(there)
      const next = await there.post('flow', {}, disk)
      expect(await there.waitingFor(next)).toMatchObject({ kind: 'resource', resource: 'disk' })
      await claim.consume()
      expect((await there.claimNext())[0].job.uuid).toBe(next.uuid)
    })

    test('that waits for too long, or is asked to stop, is given up and in the trash', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const disk = { resources: { exclusive: ['disk'] } }
      await there.post('flow', {}, disk)
      await there.claimNext()
      await refresh(here)
      expect(await rejectionOf(here.postAndClaim('flow', {}, { name: 'late', ...disk, timeout: 1 }))).toBeInstanceOf(
        Timeout,
      )
      const stop = new AbortController()
      const stopped = here.postAndClaim('flow', {}, { name: 'stopped', ...disk, signal: stop.signal })
      await untilOnBoard(there, 2)
      stop.abort(new Error('enough'))
      expect(String(await rejectionOf(stopped))).toContain('enough')
      await refresh(here)
      expect((await all(here.trashed())).map(({ name }) => name)).toEqual(['late', 'stopped'])
      expect(await here.countJobs()).toBe(1)
    })
  }

  if (keys) {
    test('with a key that is taken it is a Duplicate', async () => {
      const board = await open()
      const there = await board.post('flow', {}, { key: 'one' })
      expect(await rejectionOf(board.postAndClaim('flow', {}, { key: 'one' }))).toBeInstanceOf(Duplicate)
      expect([there.state, await board.countJobs()]).toEqual(['UNCLAIMED', 1])
    })
  }

  test('what makes no sense is refused', async () => {
    const board = await open()
    const options = { delay: '1m' } as object
    expect(await rejectionOf(board.postAndClaim('flow', {}, options))).toBeInstanceOf(InvalidArgument)
    expect(await rejectionOf(board.find('00000000-0000-7000-8000-000000000000'))).toBeInstanceOf(NotFound)
    expect(await board.countJobs()).toBe(0)
  })
}

/** Resolves when so many jobs are on the board. */
async function untilOnBoard(board: JobBoard, jobs: number): Promise<void> {
  using _view = await board.view()
  while ((board.jobCount ?? 0) < jobs) await new Promise<void>((resolve) => board.on('posted', () => resolve()))
}
