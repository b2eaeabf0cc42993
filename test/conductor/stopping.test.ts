/** A stop in the middle of everything: whoever asks for it, and whatever is on its way. */
import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import type { Conductor } from '../../src/index.ts'
import { refresh } from '../board/jobs.ts'
import { ProxiedBoard } from '../board/proxied-board.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { boards, singleTaskFlow, startTestConductor } from './conducting.ts'

const fine = singleTaskFlow('fine', () => 1)

describe('who asks for it', () => {
  test('a listener', async () => {
    const [board] = await boards('a')
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine], concurrency: 1 })
    conductor.on('settled', () => conductor.stop())
    const [first, second] = [await board.post(fine, { n: 1 }), await board.post(fine, { n: 2 })]
    await conductor.stopped
    expect([first.state, second.state, conductor.running]).toEqual(['COMPLETE', 'UNCLAIMED', 0])
  })

  test('a task, which does not have to wait for it', async () => {
    const [board] = await boards('a')
    let conductor: Conductor | undefined
    const last = singleTaskFlow('last', () => void conductor?.stop())
    conductor = await startTestConductor({ board, persistence: 'memory:', flows: [last] })
    const job = await board.post(last, { n: 1 })
    await conductor.stopped
    expect(job.state).toBe('COMPLETE')
  })

  test('a task that waits for it waits for itself: it is asked to stop, and its job goes back', async () => {
    const [board] = await boards('a')
    const limits = { drainTimeout: 1, abortTimeout: 1 }
    const ended = createDeferred()
    let conductor: Conductor | undefined
    const waiting = singleTaskFlow('waiting', async () => {
      await conductor?.stop()
      ended.resolve()
    })
    conductor = await startTestConductor({ board, persistence: 'memory:', flows: [waiting], ...limits })
    const job = await board.post(waiting, { n: 1 })
    await ended.promise
    expect([conductor.state, job.state]).toEqual(['stopped', 'UNCLAIMED'])
  })

  test('a caller, while a burst ends by itself', async () => {
    const [board] = await boards('a')
    const [reached, release] = [createDeferred(), createDeferred()]
    const slow = singleTaskFlow('slow', async () => {
      reached.resolve()
      await release.promise
    })
    const job = await board.post(slow, { n: 1 })
    const conductor = await startTestConductor({
      board,
      persistence: 'memory:',
      flows: [slow],
      maxJobs: 1,
      burst: true,
    })
    await reached.promise
    const stops = [conductor.stop(), conductor.stop(), conductor.stopped]
    expect(conductor.state).toBe('draining')
    release.resolve()
    await Promise.all(stops)
    expect([conductor.state, job.state]).toEqual(['stopped', 'COMPLETE'])
  })

  test('a caller, while it is paused', async () => {
    const [board] = await boards('a')
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine] })
    conductor.pause()
    await conductor.stop()
    expect(conductor.state).toBe('stopped')
    conductor.resume()
    expect(conductor.state).toBe('stopped')
  })
})

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  test('while the answer to a claim is on its way: the job goes back, uncharged and never begun', async () => {
    await using setup = await ProxiedBoard.set()
    const { board, other, proxy } = setup
    let ran = 0
    const counted = singleTaskFlow('counted', () => {
      ran += 1
    })
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [counted] })
    await refresh(board)
    // The posting is read, then claimed: perhaps before the answer to the post arrives here.
    const swallowed = (async () => {
      await proxy.nextRequest()
      await proxy.nextRequest()
      proxy.mode = 'swallow-replies'
    })()
    const job = await other.post(counted, { n: 1 })
    await swallowed
    const stopped = conductor.stop()
    proxy.resetAll()
    proxy.mode = 'pass'
    await stopped
    await refresh(other)
    expect([job.state, ran]).toEqual(['UNCLAIMED', 0])
    expect(job.attempts.filter(({ ended }) => ended !== 'returned')).toEqual([])
  })

  test('while there is no connection', async () => {
    await using setup = await ProxiedBoard.set()
    const { board, proxy } = setup
    const conductor = await startTestConductor({
      board,
      persistence: 'memory:',
      flows: [fine],
      removeLogbooksAfter: '1d',
    })
    proxy.mode = 'blackhole'
    proxy.resetClients()
    await conductor.stop()
    expect(conductor.state).toBe('stopped')
  })
})
