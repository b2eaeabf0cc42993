/** Which jobs a conductor takes, when it ends by itself, how it says that it is well. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { JobBoard } from '../../src/board/index.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { InvalidArgument, NotFound, StorageFailure } from '../../src/core/errors.ts'
import { monotonic } from '../../src/core/time.ts'
import { type Conductor, type ConductorOptions, openPersistence, type SIZES, startConductor } from '../../src/index.ts'
import { refresh } from '../board/jobs.ts'
import { boards, delegate, singleTaskFlow, startTestConductor } from './conducting.ts'

const fine = singleTaskFlow('fine', () => 1)

/** Resolves with the first event of the name. */
function next<E extends Parameters<Conductor['on']>[0]>(conductor: Conductor, event: E): Promise<unknown> {
  return new Promise((resolve) => {
    const off = conductor.on(event, (told: unknown) => {
      off()
      resolve(told)
    })
  })
}

async function postAll(board: JobBoard, jobs: number): Promise<void> {
  for (let n = 0; n < jobs; n++) await board.post(fine, { n })
}

/** Returns a log, and its lines about logbooks with their reasons. */
function storageLog() {
  const lines: string[] = []
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line)
    if (msg.startsWith('the logbooks are')) lines.push([msg, reason].filter(Boolean).join(': '))
  }
  return { lines, log: pino({}, { write }) }
}

describe('what it takes', () => {
  test('jobs of its sizes, and leaves the others', async () => {
    const [board, other] = await boards('a', 'b')
    const posted = new Map<string, Awaited<ReturnType<JobBoard['post']>>>()
    for (const size of ['small', 'medium', 'large'] satisfies (typeof SIZES)[number][]) {
      posted.set(size, await board.post(fine, { n: 1 }, { size }))
    }
    await startTestConductor({
      board,
      persistence: 'memory:',
      flows: [fine],
      sizes: ['small', 'large'],
      burst: true,
    }).then((conductor) => conductor.stopped)
    expect([...posted].map(([size, { state }]) => [size, state])).toEqual([
      ['small', 'COMPLETE'],
      ['medium', 'UNCLAIMED'],
      ['large', 'COMPLETE'],
    ])
    await startTestConductor({ board: other, persistence: 'memory:', flows: [fine], name: 'other' })
    expect(await posted.get('medium')?.wait()).toBe('COMPLETE')
  })

  test('within a size, what comes first in claim order', async () => {
    const [board] = await boards('a')
    const order: number[] = []
    const noted = singleTaskFlow('noted', ({ n }) => order.push(n))
    await board.post(noted, { n: 3 }, { size: 'large' })
    await board.post(noted, { n: 0 }, { size: 'small', priority: 'VERY_HIGH' })
    await board.post(noted, { n: 2 }, { size: 'large', priority: 'HIGH' })
    await board.post(noted, { n: 1 }, { size: 'large', priority: 'VERY_HIGH' })
    const large = {
      board,
      persistence: 'memory:',
      flows: [noted],
      sizes: ['large'],
      concurrency: 1,
      burst: true,
    } as const
    await (await startTestConductor(large)).stopped
    expect(order).toEqual([1, 2, 3])
  })

  test('half-done jobs of the dead not before takeoverDelay, what was given back at once', async () => {
    const [mortal, nextOwner] = await boards('mortal', 'next-owner')
    const half = await mortal.post(fine, { n: 1 }, { name: 'half done' })
    const whole = await mortal.post(fine, { n: 2 }, { name: 'given back' })
    const seen = await nextOwner.find(half.uuid)
    await mortal.claim(half)
    await (await mortal.claim(whole)).abandon()
    const takeoverDelay = 400
    const started: string[] = []
    const conductor = await startTestConductor({
      board: nextOwner,
      persistence: 'memory:',
      flows: [fine],
      takeoverDelay,
    })
    conductor.on('started', ({ job }) => started.push(job.name))
    const before = monotonic()
    await mortal.close()
    expect(await seen.wait()).toBe('COMPLETE')
    expect(monotonic() - before).toBeGreaterThanOrEqual(takeoverDelay)
    expect(started).toEqual(['given back', 'half done'])
  })
})

describe('it ends by itself', () => {
  async function ended(board: JobBoard, options: Partial<ConductorOptions>): Promise<number> {
    let runs = 0
    const conductor = await startTestConductor({
      board,
      persistence: 'memory:',
      flows: [fine],
      concurrency: 2,
      ...options,
    })
    conductor.on('settled', () => {
      runs += 1
    })
    await conductor.stopped
    expect(conductor.state).toBe('stopped')
    return runs
  }

  test('in a burst: when nothing is left to claim', async () => {
    const [board, other] = await boards('a', 'b')
    expect(await ended(board, { burst: true })).toBe(0)
    await postAll(other, 7)
    await refresh(board)
    await board.post(fine, { n: 1 }, { delay: '1h' })
    expect(await ended(board, { burst: true })).toBe(7)
    expect(await board.countJobs()).toBe(1)
  })

  test('in a burst: not before the jobs are done that its own jobs have posted', async () => {
    const [board] = await boards('a')
    const chain = singleTaskFlow('chain', async ({ n }) => {
      if (n > 0) await board.post(chain.name, { n: n - 1 })
    })
    await board.post(chain, { n: 5 })
    expect(await ended(board, { burst: true, flows: [chain] })).toBe(6)
    expect(await board.countJobs()).toBe(0)
  })

  test('after maxJobs, and claims no more than those', async () => {
    const [board] = await boards('a')
    await postAll(board, 5)
    expect(await ended(board, { maxJobs: 3 })).toBe(3)
    expect(await board.countJobs()).toBe(2)
    expect(await ended(board, { maxJobs: 10, burst: true })).toBe(2)
  })

  test('after maxJobs, and what it has begun may finish', async () => {
    const [board] = await boards('a')
    const [reached, release] = [createDeferred(), createDeferred()]
    const slow = singleTaskFlow('slow', async () => {
      reached.resolve()
      await release.promise
    })
    const job = await board.post(slow, { n: 1 })
    const over = ended(board, { flows: [slow], maxJobs: 1, drainTimeout: 0, abortTimeout: 0 })
    await reached.promise
    await board.post(slow, { n: 2 })
    expect(job.state).toBe('CLAIMED')
    release.resolve()
    expect(await over).toBe(1)
    expect([job.state, board.jobCount]).toEqual(['COMPLETE', 1])
  })

  test('after maxJobs, also where it was paused meanwhile', async () => {
    const [board] = await boards('a')
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine], maxJobs: 1 })
    conductor.on('started', () => conductor.pause())
    const job = await board.post(fine, { n: 1 })
    await conductor.stopped
    expect(job.state).toBe('COMPLETE')
  })

  test('when it has run nothing for maxIdleTime, counted from the end of the last', async () => {
    const [board] = await boards('a')
    expect(await ended(board, { maxIdleTime: 1 })).toBe(0)
    const maxIdleTime = 300
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine], maxIdleTime })
    await board.post(fine, { n: 1 })
    await next(conductor, 'settled')
    const idle = monotonic()
    await conductor.stopped
    // Timers may fire within a millisecond before their time.
    expect(monotonic() - idle).toBeGreaterThan(maxIdleTime - 50)
  })
})

describe('paused', () => {
  test('it claims nothing, what runs goes on, and others claim', async () => {
    const [board, other] = await boards('a', 'b')
    const [reached, release] = [createDeferred(), createDeferred()]
    const slow = singleTaskFlow('slow', async () => {
      reached.resolve()
      await release.promise
    })
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [slow, fine], concurrency: 4 })
    const running = await board.post(slow, { n: 1 })
    await reached.promise
    conductor.pause()
    conductor.pause()
    expect(conductor.state).toBe('paused')
    const job = await board.post(fine, { n: 1 })
    await refresh(board)
    const elsewhere = await startTestConductor({ board: other, persistence: 'memory:', flows: [fine], name: 'other' })
    await next(elsewhere, 'settled')
    expect(job.state).toBe('COMPLETE')
    await elsewhere.stop()
    const later = await board.post(fine, { n: 2 })
    release.resolve()
    expect(await running.wait()).toBe('COMPLETE')
    expect(later.state).toBe('UNCLAIMED')
    conductor.resume()
    expect(await later.wait()).toBe('COMPLETE')
  })
})

describe('how it says that it is well', () => {
  async function ask(conductor: Conductor, path: string): Promise<[status: number, body: Record<string, unknown>]> {
    const response = await fetch(`${conductor.healthUrl}${path}`)
    return [response.status, (await response.json()) as Record<string, unknown>]
  }

  test('over HTTP: ready while it can claim, alive until it has stopped', async () => {
    const [board] = await boards('a')
    const health = { port: 0 }
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine], concurrency: 3, health })
    const well = { state: 'idle', healthy: true, running: 0, slots: 3, board: 'connected', storage: 'there' }
    expect(await ask(conductor, '/healthz')).toMatchObject([200, well])
    expect(await ask(conductor, '/readyz?verbose')).toMatchObject([200, well])
    expect(await ask(conductor, '/')).toMatchObject([404, {}])
    expect((await fetch(`${conductor.healthUrl}/readyz`, { method: 'POST' })).status).toBe(405)
    const head = await fetch(`${conductor.healthUrl}/readyz`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    conductor.pause()
    expect(await ask(conductor, '/readyz')).toMatchObject([503, { state: 'paused' }])
    expect(await ask(conductor, '/healthz')).toMatchObject([200, { state: 'paused' }])
    const taken = { board: 'memory:', persistence: 'memory:', flows: [fine], health: { port: portOf(conductor) } }
    await expect(startConductor(taken)).rejects.toThrow(InvalidArgument)
    const url = `${conductor.healthUrl}/healthz`
    await conductor.stop()
    await expect(fetch(url)).rejects.toThrow()
  })

  test('a client that never ends its request, or never reads, keeps no stop from ending', async () => {
    const [board] = await boards('a')
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine], health: { port: 0 } })
    const clients = ['GET /healthz HTTP/1.1\r\nHost:', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', ''].map((said) => {
      const client = connect({ port: portOf(conductor), host: '127.0.0.1' })
      client.on('error', () => undefined).write(said)
      return client
    })
    await Promise.all(clients.map((client) => once(client, 'connect')))
    expect((await ask(conductor, '/healthz'))[0]).toBe(200)
    await conductor.stop()
    expect(conductor.state).toBe('stopped')
    for (const client of clients) client.destroy()
  })

  function portOf(conductor: Conductor): number {
    return Number(new URL(conductor.healthUrl ?? '').port)
  }

  test('without a board it is not ready, and says since when', async () => {
    const [board] = await boards('a')
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine], health: { port: 0 } })
    expect(conductor.healthy).toBe(true)
    const checked = conductor.lastClaimableCheck
    expect(Date.now() - Number(checked)).toBeLessThan(60_000)
    await board.close()
    expect(conductor.healthy).toBe(false)
    const [status, { lastClaimableCheck }] = await ask(conductor, '/readyz')
    expect(status).toBe(503)
    expect(Date.parse(String(lastClaimableCheck))).toBeLessThanOrEqual(Date.now())
    expect((await ask(conductor, '/healthz'))[0]).toBe(200)
  })

  test('while the logbooks are away nothing is claimed, until they answer again', async () => {
    const [board] = await boards('a')
    const inner = await openPersistence('memory:')
    let there = false
    let asked = 0
    const twice = createDeferred()
    const refuse = () => {
      throw new StorageFailure('disk gone', { retryable: true })
    }
    let acquired = 0
    const persistence = delegate(inner, {
      acquire: async (request) => {
        acquired += 1
        return there ? inner.acquire(request) : refuse()
      },
      getBook: async (uuid) => {
        asked += 1
        if (asked === 2) twice.resolve()
        if (!there) refuse()
        throw new NotFound(`there is no logbook ${uuid}`)
      },
    })
    const { lines, log } = storageLog()
    const conductor = await startTestConductor({ board, persistence, log, flows: [fine], health: { port: 0 } })
    const job = await board.post(fine, { n: 1 })
    await twice.promise
    expect([acquired, conductor.healthy, job.state]).toEqual([1, false, 'UNCLAIMED'])
    expect(await ask(conductor, '/readyz')).toMatchObject([503, { storage: 'away' }])
    there = true
    expect(await job.wait()).toBe('COMPLETE')
    expect([acquired, conductor.healthy]).toEqual([2, true])
    expect(lines).toEqual([
      'the logbooks are away: no job is claimed until they answer: disk gone',
      'the logbooks are back',
    ])
  })

  test('logbooks are away as soon as a write is repeated, while its job still runs', async () => {
    const [board] = await boards('a')
    const inner = await openPersistence('memory:')
    const checked = createDeferred()
    const there = createDeferred()
    const listeners = new Set<(error: Error) => void>()
    const persistence = delegate(inner, {
      onRetry: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
      getBook: async (uuid) => {
        checked.resolve()
        await there.promise
        return inner.getBook(uuid)
      },
    })
    const { lines, log } = storageLog()
    const release = createDeferred()
    const slow = singleTaskFlow('slow', () => release.promise)
    const conductor = await startTestConductor({ board, persistence, log, flows: [slow], health: { port: 0 } })
    const job = await board.post(slow, { n: 1 })
    await next(conductor, 'started')
    for (let writes = 0; writes < 2; writes += 1)
      for (const listener of listeners) listener(new StorageFailure('no connection', { retryable: true }))
    expect(await ask(conductor, '/readyz')).toMatchObject([503, { storage: 'away' }])
    await checked.promise
    there.resolve()
    await expect.poll(() => conductor.healthy, { timeout: 60_000 }).toBe(true)
    expect(lines).toEqual([
      'the logbooks are away: no job is claimed until they answer: no connection',
      'the logbooks are back',
    ])
    release.resolve()
    expect(await job.wait()).toBe('COMPLETE')
    await conductor.stop()
    expect(listeners.size).toBe(0)
  })

  test('on the board: who it is, and what it runs', async () => {
    const [board, other] = await boards('a', 'b')
    const release = createDeferred()
    const slow = singleTaskFlow('slow', () => release.promise)
    const conductor = await startTestConductor({
      board,
      persistence: 'memory:',
      flows: [slow],
      concurrency: 2,
      sizes: ['medium'],
    })
    const entity = async () => (await other.entities('conductor'))[0]?.metadata
    await expect.poll(entity, { timeout: 10_000 }).toMatchObject({
      pid: process.pid,
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      flows: ['slow'],
      queues: ['medium', 'default'],
      concurrency: 2,
      startedAt: expect.any(Date),
      state: 'idle',
      running: 0,
      jobs: [],
    })
    const job = await board.post(slow, { n: 1 })
    await next(conductor, 'started')
    await expect.poll(entity, { timeout: 10_000 }).toMatchObject({ state: 'busy', running: 1, jobs: [job.uuid] })
    release.resolve()
    await job.wait()
    conductor.pause()
    await expect.poll(entity, { timeout: 10_000 }).toMatchObject({ state: 'paused', running: 0, jobs: [] })
  })
})

test.each([
  ['sizes', { sizes: ['huge'] }],
  ['sizes', { sizes: [] }],
  ['queue', { queues: [] }],
  ['queue', { queues: ['a,b'] }],
  ['queue', { queues: ['urgent', 'urgent'] }],
  ['queue', { queues: { urgent: 0 } }],
  ['queue', { queues: ['small'], sizes: ['small'] }],
  ['maxJobs', { maxJobs: 0 }],
  ['maxIdleTime', { maxIdleTime: 'soon' }],
  ['takeoverDelay', { takeoverDelay: -1 }],
  ['burst', { burst: 'yes' }],
  ['health', { health: 8080 }],
  ['health', { health: { port: 70_000 } }],
])('%s that makes no sense is refused by name', async (name, wrong) => {
  const options = { board: 'memory:', persistence: 'memory:', flows: [fine], ...wrong } as ConductorOptions
  await expect(startConductor(options)).rejects.toThrow(name)
})
