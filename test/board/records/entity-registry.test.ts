/** The order of the writes of one entity, when an update meets another write. */
import { expect, test } from 'vitest'
import { EntityRegistry, type EntityRegistryOptions } from '../../../src/board/records/entity-registry.ts'
import { createDeferred, type Deferred } from '../../../src/core/async/abort.ts'
import { NotConnected } from '../../../src/core/errors.ts'
import { rejectionOf } from '../events.ts'

/** The entities of a backend, whose writes are answered by the test. */
class HeldEntities {
  /** The states that were written, and `gone` for each removal. */
  readonly writes: unknown[] = []
  #answer: Deferred<void> | undefined

  readonly register: EntityRegistryOptions['entities']['register'] = async ({ metadata }) => {
    this.writes.push(metadata['state'])
    this.#answer = createDeferred<void>()
    await this.#answer.promise
  }

  readonly unregister: EntityRegistryOptions['entities']['unregister'] = async () => {
    this.writes.push('gone')
  }

  /** Answers the newest write. */
  answer(error?: Error): void {
    if (error) this.#answer?.reject(error)
    else this.#answer?.resolve()
  }
}

async function registered() {
  const entities = new HeldEntities()
  const registry = new EntityRegistry({
    ...{ entities, signal: new AbortController().signal },
    onError: (error) => expect.unreachable(String(error)),
  })
  const registering = registry.register({ kind: 'conductor', name: 'one', metadata: { state: 'idle' } })
  entities.answer()
  return { entities, registry, entity: await registering }
}

test('an update waits for the registration in a new session, which could overwrite it', async () => {
  const { entities, registry, entity } = await registered()
  const started = registry.sessionStarted('second')
  const updated = Promise.all(['busy', 'last'].map((state) => entity.update({ state })))
  expect(entities.writes).toEqual(['idle', 'idle'])
  entities.answer()
  await expect.poll(() => entities.writes).toEqual(['idle', 'idle', 'last'])
  entities.answer()
  await Promise.all([started, updated])
  expect(entities.writes).toEqual(['idle', 'idle', 'last'])
})

test('an update that fails is an error of its own call only: the next one is written', async () => {
  const { entities, entity } = await registered()
  const failing = rejectionOf(entity.update({ state: 'busy' }))
  const next = entity.update({ state: 'last' })
  entities.answer(new NotConnected('away'))
  expect(await failing).toBeInstanceOf(NotConnected)
  await expect.poll(() => entities.writes).toEqual(['idle', 'busy', 'last'])
  entities.answer()
  await next
})

test('an entity that is disposed while it is written is removed after the write, which could be the last to arrive', async () => {
  const { entities, entity } = await registered()
  const updated = Promise.all(['busy', 'last'].map((state) => entity.update({ state })))
  await entity[Symbol.asyncDispose]()
  expect(entities.writes).toEqual(['idle', 'busy', 'gone'])
  entities.answer()
  await updated
  expect(entities.writes).toEqual(['idle', 'busy', 'gone', 'gone'])
})
