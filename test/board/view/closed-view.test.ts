/** A view without a connection, or of a closed board, is idle: it does not ask again and again for what it cannot read. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { BackendJobs } from '../../../src/board/contract/index.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { NotConnected } from '../../../src/core/errors.ts'
import { fakeBackend } from '../override-role.ts'

function viewOf(read: BackendJobs['read']) {
  const closing = new AbortController()
  const listing = {
    jobs: ['job1'],
    claimed: new Set<string>(),
    trashed: new Set<string>(),
    cancelled: new Set<string>(),
  }
  const backend = fakeBackend({
    changes: { subscribe: async () => undefined },
    clock: { now: () => Date.now() },
    jobs: { read, list: async () => listing },
  })
  const none = () => undefined
  const listener = {
    jobChanged: none,
    cancelRequested: none,
    jobsExpired: none,
    flowUnaccepted: none,
    limited: none,
    statusRead: none,
    onError: none,
  }
  const { signal } = closing
  const view = new LiveView({ backend, listener, unacceptedAfter: 0, signal })
  view.hold()
  return { view, closing }
}

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await turn()
}

test('without a connection it reads nothing until the board is listed again', async () => {
  let reads = 0
  const { view } = viewOf(async () => {
    reads += 1
    throw new NotConnected('gone')
  })
  view.resync()
  await turns(50)
  expect(reads).toBe(1)
  view.resync()
  await turns(50)
  expect(reads).toBe(2)
})

test('once the board is closed it does nothing', async () => {
  let woken = 0
  const { view, closing } = viewOf(async () => [undefined])
  view.resync()
  closing.abort()
  await turns(10)
  const count = async () => {
    for (;;) {
      await view.changed.wait()
      woken += 1
    }
  }
  void count()
  await turns(50)
  expect(woken).toBeLessThan(3)
})
