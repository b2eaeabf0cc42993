/** The order of the writes of one entity: those of an update and of a new session meet. */
import { expect, test } from 'vitest'
import { EntityRegistry } from '../../../src/board/api/entity-registry.ts'
import type { Backend, Entity } from '../../../src/board/backend.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'

test('an update waits for the registration in a new session, which could replace it', async () => {
  const written: unknown[] = []
  const answers: (() => void)[] = []
  const backend = {
    register: async ({ metadata }: Entity) => {
      written.push(metadata['state'])
      const answer = createDeferred<void>()
      answers.push(answer.resolve)
      await answer.promise
    },
  } as unknown as Backend
  const registry = new EntityRegistry({
    backend,
    signal: new AbortController().signal,
    onError: (error) => expect.unreachable(String(error)),
  })
  const registering = registry.register({ kind: 'conductor', name: 'one', metadata: { state: 'idle' } })
  answers.at(-1)?.()
  const entity = await registering
  const started = registry.sessionStarted('second')
  const updated = Promise.all(['busy', 'last'].map((state) => entity.update({ state })))
  expect(written).toEqual(['idle', 'idle'])
  answers.at(-1)?.()
  await expect.poll(() => written).toEqual(['idle', 'idle', 'last'])
  answers.at(-1)?.()
  await Promise.all([started, updated])
  expect(written).toEqual(['idle', 'idle', 'last'])
})
