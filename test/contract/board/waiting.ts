/** Why a job is not being run is told, by whoever is asked. */
import { expect, test } from 'vitest'
import { NotFound } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import type { BoardCapabilities } from './capabilities.ts'

export function waitingContract({ open }: Place, { delays, resources: resourcesToo }: BoardCapabilities): void {
  test('none of the conductors knows its flow, until one does', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('greet', {})
    const nobody = { kind: 'flow', flow: 'greet', text: expect.stringContaining('no conductor here knows flow greet') }
    // Where there are no conductors it may be for somebody's own loop.
    expect(await there.waitingFor(job)).toBeUndefined()
    await using _other = await there.registerEntity({ kind: 'conductor', name: 'a', metadata: { flows: ['part'] } })
    expect(await here.waitingFor(job)).toMatchObject(nobody)
    {
      await using _one = await there.registerEntity({ kind: 'conductor', name: 'b', metadata: { flows: ['greet'] } })
      await refresh(here)
      expect(await here.waitingFor(job)).toBeUndefined()
    }
    await refresh(here)
    expect(await here.waitingFor(job)).toMatchObject(nobody)
    await using _silent = await there.registerEntity({ kind: 'conductor', name: 'c', metadata: {} })
    await refresh(here)
    expect(await here.waitingFor(job)).toBeUndefined()
  })

  test('none of the conductors serves its queue, or those that do have not its flow', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('greet', {}, { queue: 'reports' })
    const reason = async () => {
      await refresh(here)
      return here.waitingFor(job)
    }
    // Where there are no conductors it may be for somebody's own loop.
    expect(await reason()).toBeUndefined()
    const register = (name: string, metadata: Readonly<Record<string, unknown>>) =>
      there.registerEntity({ kind: 'conductor', name, metadata })
    await using _other = await register('a', { flows: ['greet'], queues: ['bulk', 'report'] })
    await using _weighted = await register('b', { flows: ['greet'], queues: { mail: 2 } })
    expect(await reason()).toEqual({ kind: 'queue', queue: 'reports', text: 'no conductor serves queue reports' })
    {
      await using _part = await register('c', { flows: ['part'], queues: ['rep*'] })
      expect(await reason()).toEqual({
        ...{ kind: 'flow', flow: 'greet' },
        text: 'no conductor here that serves queue reports knows flow greet',
      })
    }
    expect(await reason()).toMatchObject({ kind: 'queue' })
    {
      await using _pattern = await register('d', { flows: ['greet'], queues: { 'rep*': 1 } })
      expect(await reason()).toBeUndefined()
    }
    await using _all = await register('e', { flows: ['greet'] })
    expect(await reason()).toBeUndefined()
  })

  test('the pause of the board, before anything else', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('greet', {}, delays ? { delay: '1h' } : {})
    await here.pause()
    await refresh(there)
    for (const board of [here, there]) {
      expect(await board.waitingFor(job)).toMatchObject({ kind: 'pause', text: expect.stringContaining('paused') })
    }
  })

  if (delays)
    test('its delay, with its end', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const before = Date.now()
      const job = await here.post('greet', {}, { delay: '1h' })
      const waiting = await there.waitingFor(job)
      expect(waiting).toMatchObject({ kind: 'delay', until: expect.any(Date) })
      const until = waiting?.kind === 'delay' ? waiting.until : new Date(0)
      expect(until.getTime()).toBeGreaterThanOrEqual(before + 3_600_000)
      expect(until.getTime()).toBeLessThanOrEqual(Date.now() + 3_600_000)
      expect(waiting?.text).toContain(until.toISOString())
    })

  if (resourcesToo)
    test('its resource: who holds it and since when, or who stands before it', async () => {
      const [here, there] = await Promise.all([open({ who: 'here' }), open()])
      const resources = { exclusive: ['disk'] }
      const jobs = []
      for (const name of ['first', 'second', 'third']) jobs.push(await here.post('greet', {}, { name, resources }))
      const [first, second, third] = jobs
      if (!first || !second || !third) throw new Error('three jobs were posted')
      expect(await there.waitingFor(second)).toMatchObject({ kind: 'resource', resource: 'disk' })
      const inLine = await there.waitingFor(second)
      expect(inLine).toMatchObject({ job: { uuid: first.uuid }, text: expect.stringMatching(/disk.*wanted before/) })
      expect(inLine).not.toHaveProperty('since')

      const before = Date.now()
      await here.claim(first)
      await refresh(there)
      for (const board of [here, there]) {
        for (const job of [second, third]) {
          const waiting = await board.waitingFor(job)
          expect(waiting).toMatchObject({ kind: 'resource', resource: 'disk', job: { uuid: first.uuid } })
          expect(waiting?.text).toMatch(/disk is held by/)
          const since = waiting?.kind === 'resource' ? waiting.since?.getTime() : undefined
          // The owner writes the server's time as it estimates it: half a round trip early or late.
          expect(since).toBeGreaterThan(before - 10_000)
          expect(since).toBeLessThan(Date.now() + 10_000)
        }
      }
    })

  test('nothing, where it runs or has ended; and one that never was here is not found', async () => {
    const [here, there, elsewhere] = await Promise.all([open(), open(), open()])
    const job = await here.post('greet', {})
    const seen = await there.find(job.uuid)
    const claim = await here.claim(job)
    await refresh(there)
    expect(await there.waitingFor(seen)).toBeUndefined()
    await claim.consume()
    expect(await here.waitingFor(job)).toBeUndefined()
    const other = await elsewhere.post('greet', {})
    const foreign = await there.find(other.uuid)
    await there.close()
    await (await here.claim(other)).consume()
    expect(await rejectionOf(here.waitingFor(foreign))).toBeInstanceOf(NotFound)
  })
}
