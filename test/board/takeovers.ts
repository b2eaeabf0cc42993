/** An owner that others take for dead, and is not: what has to become of it and of its job, whatever the server. */
import { expect } from 'vitest'
import type { JobBoard } from '../../src/board/index.ts'
import { ClaimLost } from '../../src/core/errors.ts'
import { startNode } from '../support/node-process.ts'
import type { TcpProxy } from '../support/proxy.ts'
import { nextEvent, nextSession, rejectionOf, whenLost } from './events.ts'
import { namesOn, refresh } from './jobs.ts'

const CLAIMER = new URL('./stopped-claimer.ts', import.meta.url)

export interface StoppedOwner {
  readonly nextOwner: JobBoard
  /** Of the same board, for the owner's process, with a short session. */
  readonly uri: string
  /** Called when the owner has its claim; what it resolves to is called when that was inherited. */
  readonly observer?: () => Promise<() => Promise<void>>
}

/** Its process was stopped for longer than its session lasts: it finds out before it does anything, and goes on by itself. */
export async function checkStoppedOwner({ nextOwner, uri, observer }: StoppedOwner): Promise<void> {
  await nextOwner.post('flow', {}, { name: 'first' })
  await using owner = await startNode(CLAIMER, [uri])
  await owner.says('claimed')
  await owner.says('held')
  const look = await observer?.()
  const inherited = nextOwner.claimNext()
  owner.signal('SIGSTOP')
  const [claim] = await inherited
  expect(claim).toMatchObject({ who: 'next-owner', run: 2 })
  expect(claim.job.attempts).toMatchObject([{ who: 'stopped' }, { who: 'next-owner' }])
  expect(await nextOwner.entities('conductor')).toEqual([])
  await look?.()

  const before = owner.lines.length
  owner.signal('SIGCONT')
  await owner.says(/^consume: /)
  const after = owner.lines.slice(before)
  // By a timer or by being asked, whichever comes first; it never says again that it holds the claim.
  expect(after.slice(0, 3)).not.toContain('held')
  expect(after).toContain('lost')
  expect(after).toContain('consume: JOBBOARD_CLAIM_LOST')
  expect(claim.lost.aborted).toBe(false)
  await claim.consume()

  await nextOwner.post('flow', {}, { name: 'second' })
  await owner.says('claimed second, run 1')
  await owner.says('consumed')
  await refresh(nextOwner)
  expect(await nextOwner.countJobs()).toBe(0)
  while ((await nextOwner.entities('conductor')).length === 0) await refresh(nextOwner)
}

/** Nothing gets through to the server any more: its claim is lost before another gets it, and nothing of it counts afterwards. */
export async function checkDisconnectedOwner(parts: {
  readonly owner: JobBoard
  readonly nextOwner: JobBoard
  /** What the owner reaches its server through. */
  readonly proxy: TcpProxy
}): Promise<void> {
  const { owner, nextOwner, proxy } = parts
  await owner.registerEntity({ kind: 'conductor', name: 'one', metadata: {} })
  await owner.post('flow', {}, { name: 'job', resources: { exclusive: ['disk'] } })
  const [claim] = await owner.claimNext()
  await refresh(nextOwner)
  const order: string[] = []
  const [lost, back] = [whenLost(claim).then(() => order.push('lost')), nextSession(owner)]
  const abandoned = nextEvent(nextOwner, 'abandoned').then(() => order.push('abandoned'))
  const inherited = nextOwner.claimNext().then(([taken]) => {
    order.push('inherited')
    return taken
  })
  proxy.mode = 'blackhole'
  await Promise.all([lost, abandoned])
  const taken = await inherited
  expect(order).toEqual(['lost', 'abandoned', 'inherited'])
  expect(taken.fence).toBeGreaterThan(claim.fence)
  proxy.mode = 'pass'
  proxy.resetAll()
  await back
  expect(await rejectionOf(claim.consume())).toBeInstanceOf(ClaimLost)
  while ((await owner.entities('conductor')).length === 0) await refresh(owner)
  expect(taken.lost.aborted).toBe(false)
  await taken.consume()
  expect(await namesOn(owner)).toEqual([])
}
