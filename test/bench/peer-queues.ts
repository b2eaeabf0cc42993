/** The queues that the board is compared with, each with the settings that its own documentation says are its fastest. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDeferred } from '../../src/core/async/abort.ts'
import { requireFrom } from '../support/npm-folder.ts'
import { PEERS } from './peers-folder.ts'

/** Jobs added at once; five times as many are no faster. */
export const BATCH = 1_000

/** As in its guide to concurrency; ten times as much is slower, and so are pipelines made by its Redis client. */
const BULLMQ_CONCURRENCY = 50

/** As on its page about performance. The board's consumer, too, has about so many jobs in hand as this local queue. */
const GRAPHILE_FASTEST = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
}

/** What a job carries. */
export interface Payload {
  readonly n: number
  readonly at?: number
}

export interface Producer {
  add(payload: Payload): Promise<unknown>
  addAll(payloads: readonly Payload[]): Promise<unknown>
  close(): Promise<unknown>
}

export interface Consumer {
  /** Resolves when so many jobs are done, and the server knows it. */
  readonly completed: Promise<unknown>
  close(): Promise<unknown>
}

export interface PeerQueue {
  produce(uri: string, name: string): Promise<Producer>
  /** @param options.work done with each job when it is picked up */
  consume(uri: string, name: string, options: { count: number; work: (payload: Payload) => void }): Promise<Consumer>
}

export type PeerName = 'bullmq' | 'graphile-worker'

export const PEER_QUEUES: Readonly<Record<PeerName, PeerQueue>> = {
  bullmq: {
    produce: async (uri, name) => {
      const { Queue } = requireFrom(PEERS, 'bullmq') as BullMq
      const queue = new Queue(name, { connection: { url: uri }, defaultJobOptions: { removeOnComplete: true } })
      await queue.waitUntilReady()
      return {
        add: (payload) => queue.add('job', payload),
        addAll: (payloads) => queue.addBulk(payloads.map((data) => ({ name: 'job', data }))),
        close: () => queue.close(),
      }
    },

    consume: async (uri, name, { count, work }) => {
      const { Worker } = requireFrom(PEERS, 'bullmq') as BullMq
      const options = { connection: { url: uri }, concurrency: BULLMQ_CONCURRENCY, removeOnComplete: { count: 0 } }
      const worker = new Worker(name, async ({ data }) => work(data), options)
      const all = countdown(count)
      worker.on('completed', all.oneLess)
      await worker.waitUntilReady()
      return { completed: all.done, close: () => worker.close() }
    },
  },

  'graphile-worker': {
    produce: async (uri, schema) => {
      const { makeWorkerUtils } = graphileWorker()
      const utils = await makeWorkerUtils({ ...quiet(), preset: { worker: { connectionString: uri, schema } } })
      return {
        add: (payload) => utils.addJob('job', payload),
        addAll: (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: 'job', payload }))),
        close: () => utils.release(),
      }
    },

    consume: async (uri, schema, { count, work }) => {
      const { run } = graphileWorker()
      const all = countdown(count)
      const job = (payload: Payload) => {
        work(payload)
        all.oneLess()
      }
      const preset = { worker: { connectionString: uri, schema, ...GRAPHILE_FASTEST } }
      const runner = await run({ ...quiet(), preset, taskList: { job }, parsedCronItems: [], noHandleSignals: true })
      // A batch of completions tells nobody when it is through; a worker that has stopped has them all behind it.
      const completed = all.done.then(() => runner.stop())
      return { completed, close: () => completed }
    },
  },
}

/** As installed. */
export async function peerVersion(name: PeerName | 'pg-boss'): Promise<string> {
  const text = await readFile(join(PEERS, 'node_modules', name, 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** A client of pg-boss that maintains nothing, with a queue named `many`. */
export async function openPgBoss(uri: string): Promise<PgBossClient> {
  const Boss = requireFrom(PEERS, 'pg-boss') as new (options: object) => PgBossClient
  const boss = new Boss({ connectionString: uri, supervise: false, schedule: false })
  await boss.start()
  await boss.createQueue('many')
  return boss
}

function countdown(from: number): { readonly done: Promise<void>; oneLess(): void } {
  const { promise, resolve } = createDeferred<void>()
  let left = from
  const oneLess = () => {
    left -= 1
    if (left === 0) resolve()
  }
  return { done: promise, oneLess }
}

function graphileWorker(): GraphileWorker {
  // Read when the package is loaded; otherwise it writes a line for each job.
  process.env['NO_LOG_SUCCESS'] = '1'
  return requireFrom(PEERS, 'graphile-worker') as GraphileWorker
}

/** It logs to the console unless it is given something else. */
function quiet(): { logger: unknown } {
  const { Logger } = graphileWorker()
  return { logger: new Logger(() => (level, message) => level === 'error' && console.error(message)) }
}

export interface PgBossClient {
  start(): Promise<unknown>
  createQueue(name: string): Promise<void>
  insert(jobs: readonly { name: string; data: Payload }[]): Promise<void>
  stop(): Promise<void>
}

interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => {
    waitUntilReady(): Promise<unknown>
    add(name: string, data: Payload): Promise<unknown>
    addBulk(jobs: readonly { name: string; data: Payload }[]): Promise<unknown>
    close(): Promise<void>
  }
  readonly Worker: new (
    name: string,
    processor: (job: { data: Payload }) => Promise<void>,
    options: object,
  ) => {
    waitUntilReady(): Promise<unknown>
    on(event: 'completed', listener: () => void): void
    close(): Promise<void>
  }
}

interface GraphileWorker {
  readonly Logger: new (factory: () => (level: string, message: string) => void) => object
  makeWorkerUtils(options: object): Promise<{
    addJob(identifier: string, payload: Payload): Promise<unknown>
    addJobs(jobs: readonly { identifier: string; payload: Payload }[]): Promise<unknown>
    release(): Promise<void>
  }>
  run(options: object): Promise<{ stop(): Promise<void> }>
}
