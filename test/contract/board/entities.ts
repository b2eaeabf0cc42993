/** Participants are seen as long as they live. */
import { expect, test } from 'vitest'
import { Duplicate, InvalidArgument, NotFound } from '../../../src/core/errors.ts'
import { nextSession, rejectionOf } from '../../board/events.ts'
import { refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

const conductor = (name: string) => ({ kind: 'conductor', name, metadata: { pid: 7, deep: { list: [1] } } })

export function entitiesContract({ open, expire }: Place): void {
  test('an entity is seen by everybody until it is disposed', async () => {
    const [here, there] = await Promise.all([open(), open()])
    expect(await there.entities('conductor')).toEqual([])
    const entity = await here.registerEntity(conductor('host:1 / ünïcode . ~'))
    await refresh(there)
    expect(await there.entities('conductor')).toMatchObject([conductor('host:1 / ünïcode . ~')])
    expect(await there.entities('worker')).toEqual([])
    await entity[Symbol.asyncDispose]()
    await entity[Symbol.asyncDispose]()
    await refresh(there)
    expect(await there.entities('conductor')).toEqual([])
  })

  test('an entity may show something else, also after a change of session', async () => {
    const [mortal, other] = await Promise.all([open(), open()])
    const entity = await mortal.registerEntity({ ...conductor('one'), metadata: { state: 'idle' } })
    const second = await mortal.registerEntity({ ...conductor('two'), metadata: { state: 'idle' } })
    await entity.update({ state: 'busy' })
    const states = async () => {
      await refresh(other)
      return Object.fromEntries((await other.entities('conductor')).map(({ name, metadata }) => [name, metadata]))
    }
    expect(await states()).toEqual({ one: { state: 'busy' }, two: { state: 'idle' } })
    await Promise.all(['a', 'b', 'last'].map((state) => entity.update({ state })))
    expect(await states()).toMatchObject({ one: { state: 'last' } })
    const back = nextSession(mortal)
    await expire(mortal)
    await back
    // Each is registered anew by itself: an update waits for its own entity.
    await Promise.all([entity, second].map((each) => each.update({ state: 'after' })))
    expect(await states()).toEqual({ one: { state: 'after' }, two: { state: 'after' } })
    expect(await rejectionOf(entity.update([] as object as Record<string, unknown>))).toBeInstanceOf(InvalidArgument)
    await entity[Symbol.asyncDispose]()
    expect(await rejectionOf(entity.update({ state: 'gone' }))).toBeInstanceOf(NotFound)
    expect(Object.keys(await states())).toEqual(['two'])
  })

  test('names and kinds that look alike are kept apart', async () => {
    const board = await open()
    const names = ['a', 'A', 'a/b', 'a%2Fb', '.', '..', ' ', 'x'.repeat(500), `${'x'.repeat(500)}y`]
    for (const name of names) await board.registerEntity(conductor(name))
    await board.registerEntity({ kind: 'conductor/a', name: 'b', metadata: {} })
    const seen = await (await open()).entities('conductor')
    expect(seen.map(({ name }) => name).sort()).toEqual(names.sort())
  })

  test('a name is borne by one living entity of a kind', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const entity = await here.registerEntity(conductor('one'))
    expect(await rejectionOf(there.registerEntity(conductor('one')))).toBeInstanceOf(Duplicate)
    expect(await rejectionOf(here.registerEntity(conductor('one')))).toBeInstanceOf(Duplicate)
    await there.registerEntity({ ...conductor('one'), kind: 'worker' })
    await entity[Symbol.asyncDispose]()
    await there.registerEntity(conductor('one'))
    expect(await here.entities('conductor')).toHaveLength(1)
  })

  test('of two who take a name at once one gets it', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const asked = [here, here, there, there].map((board) => board.registerEntity(conductor('one')))
    const results = await Promise.allSettled(asked)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(Duplicate)
  })

  test('an entity comes back with the next session, and goes when its board is closed', async () => {
    const [mortal, other] = await Promise.all([open(), open()])
    await mortal.registerEntity(conductor('one'))
    await mortal.registerEntity(conductor('two'))
    for (let death = 0; death < 2; death++) {
      const back = nextSession(mortal)
      await expire(mortal)
      await back
      await refresh(mortal)
      const names = (await mortal.entities('conductor')).map(({ name }) => name)
      expect(names.sort()).toEqual(['one', 'two'])
    }
    await mortal.close()
    await refresh(other)
    expect(await other.entities('conductor')).toEqual([])
  })

  test('one that is disposed of does not come back, nor take another of its name along', async () => {
    const [mortal, other] = await Promise.all([open(), open()])
    const gone = await mortal.registerEntity(conductor('gone'))
    const errors: Error[] = []
    mortal.on('error', ({ error }) => errors.push(error))
    await gone[Symbol.asyncDispose]()
    await using _kept = await other.registerEntity(conductor('gone'))
    const back = nextSession(mortal)
    await expire(mortal)
    await back
    await refresh(mortal)
    await gone[Symbol.asyncDispose]()
    expect(await mortal.entities('conductor')).toHaveLength(1)
    expect(errors).toEqual([])
  })
}
