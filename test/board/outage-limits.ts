/** Calls keep their time limits while no server answers, and what their callers were told holds when the servers are back. */
import { expect } from 'vitest'
import type { JobBoard } from '../../src/board/index.ts'
import { Timeout } from '../../src/core/errors.ts'
import type { TcpProxy } from '../support/proxy.ts'
import { namesOn, refresh } from './jobs.ts'

const SHORT = 300

/** @param setup.board its session outlives the test, so that a call that waits for an answer hangs; `other` sees the server directly */
export async function checkLimitsInOutage(setup: {
  readonly board: JobBoard
  readonly other: JobBoard
  readonly proxy: TcpProxy
}): Promise<void> {
  const { board, other, proxy } = setup
  await using busy = await other.hold({ exclusive: ['disk'], name: 'busy' })
  const job = await board.post('flow', {}, { name: 'delayed', delay: '1h' })
  const batch = await board.batch({ name: 'batch' })
  await board.limits.set('api', { rate: { limit: 100, per: '1s' } })
  await board.limits.take('api')
  // This one has posted, and waits for its turn, when the connection is cut.
  const posted = new Promise((resolve) => other.on('posted', ({ job }) => job.name === 'waiting' && resolve(undefined)))
  const stop = new AbortController()
  const waiting = board.hold({ exclusive: ['disk'], name: 'waiting', signal: stop.signal })
  const stopped = expect(waiting).rejects.toBeInstanceOf(Timeout)
  await posted
  await refresh(board)

  proxy.mode = 'blackhole'
  stop.abort(new Timeout('the caller has stopped waiting'))
  const resource = { exclusive: ['disk'] }
  const calls: Readonly<Record<string, (limits: { timeout?: number; signal?: AbortSignal }) => Promise<unknown>>> = {
    'hold of a busy resource': (limits) => board.hold({ ...resource, name: 'own', ...limits }),
    'hold of a free resource': (limits) => board.hold({ exclusive: ['free'], name: 'own', ...limits }),
    postAndClaim: (limits) => board.postAndClaim('flow', {}, { name: 'own', ...limits }),
    claimNext: (limits) => board.claimNext({ ...limits, accept: ({ name }) => name === 'none' }),
    wait: (limits) => board.wait(limits),
    'job.wait': (limits) => job.wait(limits),
    result: (limits) => board.result(job, limits),
    'result of a uuid': (limits) => board.result(job.uuid, limits),
    'batch.wait': (limits) => batch.wait(limits),
    'limits.take': (limits) => board.limits.take('api', limits),
  }
  const signal = AbortSignal.timeout(SHORT)
  const others = [
    board.view({ signal }).then(() => 'viewed'),
    board.postMany([{ flow: 'flow', store: {}, name: 'many' }], { signal }).then(() => 'posted'),
    board.claimNext({ timeout: 0, accept: ({ name }) => name === 'none' }),
  ].map((call) => call.catch((error: Error) => error.name))
  const answers = Object.entries(calls).flatMap(([name, call]) => [
    call({ timeout: SHORT }).then(
      () => `${name} with a timeout: no error`,
      (error) => `${name}: ${error.name}`,
    ),
    call({ timeout: 60_000, signal: AbortSignal.timeout(SHORT) }).then(
      () => `${name} with a signal: no error`,
      (error) => `${name}: ${error.name}`,
    ),
  ])
  const late = Object.keys(calls).flatMap((name) => [`${name}: Timeout`, `${name}: TimeoutError`])
  expect(await Promise.all(answers)).toEqual(late)
  expect(await Promise.all(others)).toEqual([expect.any(String), 'TimeoutError', 'Timeout'])
  await stopped

  proxy.mode = 'pass'
  proxy.resetAll()
  await board.post('flow', {}, { name: 'after' }).catch(() => undefined)
  while ((await namesOn(other)).some((name) => name === 'own' || name === 'waiting')) await refresh(other)
  await busy.release()
  const [claim] = await other
    .claimNext({ accept: ({ name }) => name !== 'after' && name !== 'many', timeout: 0 })
    .catch(() => [])
  expect(claim?.job.name).toBeUndefined()
}
