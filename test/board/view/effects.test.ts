/** Effects of changes are carried out in order, also when a listener causes further changes. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Backend } from '../../../src/board/backend.ts'
import type { JobEntry } from '../../../src/board/model/entry.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'

test('a change that a listener causes is emitted after the changes before it', async () => {
  let claimed = new Set(['job2'])
  const none = new Set<string>()
  const list = async () => ({ jobs: ['job1', 'job2'], claimed, trashed: none, cancelled: none })
  const read = () => new Promise<never>(() => undefined)
  const backend: Partial<Backend> = { now: () => Date.now(), list, read }
  const emitted: string[] = []
  const jobChanged = (kind: string, { id }: JobEntry) => {
    emitted.push(`${kind} ${id}`)
    if (kind === 'claimed' && id === 'job1') view.apply([{ kind: 'claimed', id: 'job2' }])
  }
  const ignore = () => undefined
  const listener = { jobChanged, cancelRequested: ignore, flowUnaccepted: ignore, onError: ignore }
  const { signal } = new AbortController()
  const view = new LiveView({ backend: backend as Backend, listener, unacceptedAfter: 0, signal })
  view.resync()
  await turn()
  claimed = new Set(['job1'])
  view.resync()
  await turn()
  expect(emitted).toEqual(['claimed job2', 'claimed job1', 'abandoned job2', 'claimed job2'])
})
