/** Who lives, and who lost the session through a fault of its own. */
import { expect, test } from 'vitest'
import { Incarnation } from '../../../src/board/claims/incarnation.ts'
import type { Backend, Entity } from '../../../src/board/contract/index.ts'
import { fakeBackend } from '../override-role.ts'

function backendOf(shown: Entity[]): Backend {
  return fakeBackend({ session: { timeout: 10_000 }, entities: { list: async () => shown } })
}

/** An incarnation on a clock that the test sets, with the entities it shows. */
function setup() {
  const shown: Entity[] = []
  const now = { monotonic: 0, wall: 0 }
  const incarnation = new Incarnation({
    backend: backendOf(shown),
    entities: {
      register: async (entity) => {
        const whole = { ...entity, instance: 'one' }
        shown.push(whole)
        return {
          update: async () => undefined,
          [Symbol.asyncDispose]: async () => void shown.splice(shown.indexOf(whole), 1),
        }
      },
    },
    clock: () => ({ ...now }),
  })
  const pass = (ms: number) => {
    now.monotonic += ms
    now.wall += ms
  }
  return { incarnation, shown, now, pass }
}

test('an incarnation outlives a session that its store has ended', async () => {
  const { incarnation, pass } = setup()
  incarnation.start()
  const { id } = incarnation
  pass(4_999)
  incarnation.sessionLost()
  expect(incarnation.id).toBe(id)
  expect(await incarnation.listLiving(new Set([id, 'another']))).toEqual(new Set([id]))
  incarnation.stopWatching()
})

test.each([
  ['stood still for half of the timeout', { monotonic: 5_000, wall: 5_000 }],
  ['was on a machine that was suspended', { monotonic: 10, wall: 60_000 }],
])('an incarnation ends with a session that was lost while its process %s', async (_, passed) => {
  const { incarnation, shown, now } = setup()
  incarnation.start()
  const { id } = incarnation
  Object.assign(now, passed)
  incarnation.sessionLost()
  expect(incarnation.id).not.toBe(id)
  incarnation.start()
  await new Promise((resolve) => setImmediate(resolve))
  expect(shown.map(({ name }) => name)).not.toContain(id)
  expect(await incarnation.listLiving(new Set([id]))).toEqual(new Set())
  incarnation.stopWatching()
})

test('an incarnation that could not be registered is registered by the next claim', async () => {
  let tries = 0
  const incarnation = new Incarnation({
    backend: backendOf([]),
    entities: {
      register: async () => {
        tries += 1
        throw new Error('not now')
      },
    },
  })
  incarnation.start()
  await new Promise((resolve) => setImmediate(resolve))
  incarnation.start()
  expect(tries).toBe(2)
  incarnation.stopWatching()
})
