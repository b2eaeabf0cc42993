/** Effects of changes are carried out in order, also when a listener causes further changes. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { ViewListener } from '../../../src/board/view/effects.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { fakeBackend } from '../override-role.ts'

test('a change that a listener causes is emitted after the changes before it', async () => {
  let claimed = new Set(['job2'])
  const none = new Set<string>()
  const list = async () => ({ jobs: ['job1', 'job2'], claimed, trashed: none, cancelled: none })
  const read = () => new Promise<never>(() => undefined)
  const backend = fakeBackend({
    changes: { subscribe: async () => undefined },
    clock: { now: () => Date.now() },
    jobs: { list, read },
  })
  const emitted: string[] = []
  const jobChanged: ViewListener['jobChanged'] = (kind, { id }, { isEarlier }) => {
    if (isEarlier) return
    emitted.push(`${kind} ${id}`)
    if (kind === 'claimed' && id === 'job1') view.apply([{ kind: 'claimed', id: 'job2' }])
  }
  const ignore = () => undefined
  const listener = {
    jobChanged,
    cancelRequested: ignore,
    jobsExpired: ignore,
    flowUnaccepted: ignore,
    limited: ignore,
    statusRead: ignore,
    onError: ignore,
  }
  const { signal } = new AbortController()
  const view = new LiveView({ backend, listener, unacceptedAfter: 0, signal })
  view.hold()
  view.resync()
  await turn()
  claimed = new Set(['job1'])
  view.resync()
  await turn()
  // The claim that the first listing shows was made before the view was opened.
  expect(emitted).toEqual(['claimed job1', 'abandoned job2', 'claimed job2'])
})
