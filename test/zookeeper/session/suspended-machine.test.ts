import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { silentLog } from '../../../src/core/log.ts'
import { monotonic } from '../../../src/core/time.ts'
import { Hosts } from '../../../src/zookeeper/connection/hosts.ts'
import { PendingRequest } from '../../../src/zookeeper/connection/pending.ts'
import { parseConnectString } from '../../../src/zookeeper/protocol/connect-string.ts'
import { setWatches, sync } from '../../../src/zookeeper/protocol/requests.ts'
import { Session } from '../../../src/zookeeper/session/session.ts'
import { compiled } from '../../support/compiled.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { connected, failureOf } from '../clients.ts'

/** A session on a machine whose wall clock can be set forward, as it is when the machine was suspended. */
function startSession() {
  let ahead = 0
  const states: string[] = []
  const session = new Session(
    {
      hosts: new Hosts(parseConnectString(zookeeperHosts).endpoints),
      sessionTimeout: 10_000,
      connectTimeout: 3_000,
      maxRequestBytes: 1_048_575,
      maxReplyBytes: 1_024,
      maxInFlight: 100,
      newSession: 'never',
      log: silentLog,
      clock: () => ({ monotonic: monotonic(), wall: Date.now() + ahead }),
    },
    {
      stateChanged: ({ state }) => states.push(state),
      sessionChanged: () => undefined,
      events: () => undefined,
      gap: () => undefined,
      arming: (zxid) => [setWatches({ data: [], exist: [], child: [], persistent: [], recursive: [] }, zxid)],
    },
  )
  return {
    session,
    states,
    /** Asks something, and lets an hour go by before its answer is read: the request leaves in the next tick. */
    anHourLater: () => {
      const under = new PendingRequest(sync('/'), monotonic())
      session.submit(under)
      setImmediate(() => {
        ahead = 3_600_000
      })
      return under.promise
    },
    [Symbol.asyncDispose]: () => session.close(),
  }
}

describe.skipIf(!zookeeperHosts)('an owner that did not notice how time went by', () => {
  test('(the machine was suspended) takes no answer on a session whose lease is over', async () => {
    await using it = startSession()
    await it.session.start()
    using hold = it.session.lease.hold()
    await hold.proven()
    expect(await failureOf(it.anHourLater())).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
    expect(it.states).toEqual(['connecting', 'connected', 'lost'])
  })

  test('(its clock was set) goes on where no caller relies on the session', async () => {
    await using it = startSession()
    await it.session.start()
    await it.anHourLater()
    const after = new PendingRequest(sync('/'), monotonic())
    it.session.submit(after)
    await after.promise
    expect(it.states).toEqual(['connecting', 'connected'])
  })

  test('(it was stopped) says so before it does anything else', async () => {
    await using observer = await connected()
    const path = namespace()
    const gone = new Promise<void>((resolve) => {
      const events = (batch: readonly { type: string }[]) => {
        if (batch.some(({ type }) => type === 'deleted')) resolve()
      }
      void observer.watch(path, { mode: 'persistent' }, { events, gap: () => undefined })
    })
    const script = new URL('./stopped-owner.ts', import.meta.url).pathname
    const owner = spawn(process.execPath, [await compiled(script), zookeeperHosts, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const said: string[] = []
      const lines = createInterface(owner.stdout)
      const holding = new Promise<void>((resolve) => lines.on('line', (line) => line === 'holding' && resolve()))
      lines.on('line', (line) => said.push(line))
      await holding
      owner.kill('SIGSTOP')
      await gone
      const before = said.length
      owner.kill('SIGCONT')
      await once(owner, 'exit')
      const after = said.slice(before).filter((line) => line !== 'answered')
      expect(after[0]).toMatch(/^(suspended|lost)$/)
      // Whatever was printed as answered before the stop may still have been in the pipe.
      expect(said.lastIndexOf('answered')).toBeLessThan(said.indexOf(after[0] ?? ''))
    } finally {
      owner.kill('SIGKILL')
    }
  })
})
