/**
 * One process of `bench -- pool`: `pool-child.ts ROLE BOARD MODULE CHILDREN FLOW COUNT WARM_UP`. It uses the package as it is published,
 * prints `ready` when it is connected, does its part when it receives a line, and ends with a line of JSON.
 */
import { cpus } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type AnyFlow,
  type Conductor,
  isFlow,
  type Job,
  openBoard,
  openPersistence,
  startConductor,
  waitForJob,
} from 'jobboard'
import { sideBySide, whenTold } from './part-child.ts'
import * as flows from './pool-flows.ts'
import * as largeFlows from './pool-large-flows.ts'
import { processorTime } from './processor-time.ts'

/** Jobs side by side in one conductor. */
const SLOTS = 128
/** Posted side by side. */
const WIDTH = 512
/** The period of the timer whose lateness is the lag of the event loop, in milliseconds. */
const LAG_RESOLUTION_MS = 10

const FLOWS: readonly AnyFlow[] = Object.values({ ...flows, ...largeFlows }).filter(isFlow)

const [role = '', uri = '', module = '', ...rest] = process.argv.slice(2)
const children = Number(rest[0])
const flow = findFlow(rest[1])
const [count = 0, warmUp = 0] = rest.slice(2).map(Number)
await using board = await openBoard(uri)
await using persistence = await openPersistence('memory:')

function findFlow(name: string | undefined): AnyFlow {
  const found = FLOWS.find((each) => each.name === name)
  if (!found) throw new Error(`there is no flow '${name}'`)
  return found
}

/** Starts a conductor, and waits until all its children are idle. Without isolated tasks it has none. */
async function start(): Promise<Conductor> {
  const pool = { module, min: children, max: children }
  const options = { board, persistence, flows: [flow], concurrency: SLOTS, pool, health: { port: 0 } }
  const conductor = await startConductor(options)
  await untilIdle(conductor)
  return conductor
}

async function untilIdle(conductor: Conductor): Promise<void> {
  while (true) {
    const answer = await fetch(`${conductor.healthUrl}/healthz`)
    const health = (await answer.json()) as { readonly children?: { readonly idle: number } }
    if (!health.children || health.children.idle === children) return
    await pause(20)
  }
}

function post(): Promise<Job> {
  return board.post(flow.name, {})
}

/** Posts so many jobs and waits until all are done. Returns how many milliseconds it took. */
async function postAndWait(jobs: number): Promise<number> {
  const begin = performance.now()
  const posted: Job[] = []
  await sideBySide(jobs, WIDTH, async () => void posted.push(await post()))
  const states = await Promise.all(posted.map((job) => job.wait()))
  if (states.some((state) => state !== 'COMPLETE')) throw new Error('a job has failed')
  return performance.now() - begin
}

/** Runs jobs of `beginning` one by one. Returns how many milliseconds after the task before it each task began. */
async function beginOneByOne(jobs: number): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; n < jobs; n += 1) {
    const { uuid } = await post()
    const ended = await waitForJob(uuid, { board, persistence })
    if (ended.status !== 'done') throw new Error(`a job ended as ${ended.status}`)
    took.push(Number(ended.results['begun']))
  }
  return took
}

/** Cancels a job whose task computes for ever. Returns how many milliseconds later the child has died. */
async function cancelOne(conductor: Conductor): Promise<number> {
  const computes = new Promise<void>((resolve) => conductor.on('progress', () => resolve()))
  const died = new Promise<number>((resolve) => conductor.on('childDied', () => resolve(performance.now())))
  const job = await post()
  await computes
  const begin = performance.now()
  await board.cancel(job, { reason: 'to measure how long it takes' })
  const took = (await died) - begin
  await job.wait()
  await untilIdle(conductor)
  return took
}

/** Returns milliseconds of processor time: of this process, of its children, and those in which nobody wanted a processor. */
async function readProcessorTimes() {
  const { user, system } = process.cpuUsage()
  const own = (user + system) / 1_000
  const idle = cpus().reduce((sum, { times }) => sum + times.idle, 0)
  return { own, children: ((await processorTime(process.pid)) ?? Number.NaN) - own, idle }
}

/** Posts jobs that compute, and watches the event loop and the session meanwhile. */
async function watchWhileComputing(conductor: Conductor) {
  let lost = 0
  let blocked = 0
  board.on('state', ({ state }) => {
    if (state === 'lost') lost += 1
  })
  conductor.on('eventLoopBlocked', () => {
    blocked += 1
  })
  const lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })
  const before = await readProcessorTimes()
  lag.enable()
  const tookMs = await postAndWait(count)
  lag.disable()
  const after = await readProcessorTimes()
  const toMs = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - LAG_RESOLUTION_MS)
  return {
    ...{ tookMs, lost, blocked, sessionTimeoutMs: board.sessionTimeout },
    ...{ lagP99Ms: toMs(lag.percentile(99)), lagMaxMs: toMs(lag.max) },
    ...{ childrenMs: after.children - before.children, ownMs: after.own - before.own },
    idleMs: after.idle - before.idle,
  }
}

export type Watched = Awaited<ReturnType<typeof watchWhileComputing>>

const ROLES: Readonly<Record<string, () => Promise<void>>> = {
  /** Runs jobs until it is told to end. */
  conduct: async () => {
    await using _conductor = await start()
    await whenTold((end) => end())
  },

  /** Posts jobs that another process runs. */
  post: async () => {
    await postAndWait(warmUp)
    await whenTold(() => postAndWait(count))
  },

  /** Posts jobs and runs them. */
  alone: async () => {
    await using _conductor = await start()
    await postAndWait(warmUp)
    await whenTold(() => postAndWait(count))
  },

  begin: async () => {
    await using _conductor = await start()
    await beginOneByOne(warmUp)
    await whenTold(() => beginOneByOne(count))
  },

  cancel: async () => {
    await using conductor = await start()
    await whenTold(async () => {
      const took: number[] = []
      for (let n = 0; n < count; n += 1) took.push(await cancelOne(conductor))
      return took
    })
  },

  /** Runs jobs of fresh children one by one; returns how many milliseconds each child took to be ready. */
  cold: async () => {
    await using conductor = await start()
    const took: number[] = []
    conductor.on('childStarted', ({ tookMs }) => took.push(tookMs))
    await whenTold(async () => {
      for (let n = 0; n < count; n += 1) {
        await postAndWait(1)
        await untilIdle(conductor)
      }
      return took
    })
  },

  compute: async () => {
    await using conductor = await start()
    await whenTold(() => watchWhileComputing(conductor))
  },
}

await ROLES[role]?.()
