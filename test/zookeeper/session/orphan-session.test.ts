import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { monotonic } from '../../../src/core/time.ts'
import type { Connection } from '../../../src/zookeeper/connection/connection.ts'
import { Handshake } from '../../../src/zookeeper/connection/handshake.ts'
import { Hosts } from '../../../src/zookeeper/connection/hosts.ts'
import { OrphanSession } from '../../../src/zookeeper/session/orphan-session.ts'

const CREDENTIALS = { id: 7n, password: new Uint8Array(16), timeout: 10_000 }

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

test('an abandoned session is closed until a deadline and no longer, however long names take to resolve', async () => {
  const lookup = createDeferred<string[]>()
  const dialled: string[] = []
  const dial = ({ address }: { readonly address: string }): Connection => {
    dialled.push(address)
    throw new Error('it was to be closed by then')
  }
  const abandonment = new OrphanSession({
    hosts: new Hosts([{ host: 'slow', port: 1 }], { resolve: () => lookup.promise }),
    handshake: new Handshake({ auth: [], timeout: 1_000 }),
    connect: dial,
  })
  abandonment.add(CREDENTIALS)
  const closing = abandonment.closeAnywhere(monotonic() + 3_000)
  await vi.advanceTimersByTimeAsync(3_000)
  await closing
  lookup.resolve(['10.0.0.1'])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(dialled).toEqual([])
  expect(vi.getTimerCount()).toBe(0)
})
