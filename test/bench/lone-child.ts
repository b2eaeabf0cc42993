/**
 * One process of `bench -- lone`: `lone-child.ts ROLE SYSTEM URI NAME COUNT GAP [KIND]`. It posts jobs with pauses between them, or works on them: a
 * conductor of a board as it is published, or a worker of BullMQ. What is measured begins after some jobs that do not count.
 */
import { createHook } from 'node:async_hooks'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { input, linear, openBoard, openPersistence, startConductor, task } from 'jobboard'
import { createDeferred } from '../../src/core/async/abort.ts'
import { times } from './brief.ts'
import { apart, now, whenTold } from './part-child.ts'
import { PEER_QUEUES } from './peer-queues.ts'

/** The jobs before the measured ones, and the milliseconds between them. */
interface WarmUp {
  readonly jobs: number
  readonly gap: number
}

/** The jobs after which V8 has compiled what a job runs. */
export const MANY_WARM_UPS = times(4_000, 100)

/** Returns the warm-up: 40 jobs, which run all measured code once; for `warm` 4,000, after which V8 has compiled it. */
function warmUpOf({ kind, gap }: Pick<Arguments, 'kind' | 'gap'>): WarmUp {
  return kind === 'warm' ? { jobs: MANY_WARM_UPS, gap: 4 } : { jobs: 40, gap }
}

/** What a process has done for its measured jobs. */
export interface LoneWork {
  readonly jobs: number
  /** Microseconds of processor time of all threads. */
  readonly cpu: number
  /** How often the main thread has given the processor away: nearly always to wait for an event. */
  readonly switches: number
  /** Turns of the event loop. */
  readonly turns: number
  /** Milliseconds from before the post to the first line of the task, or to the answer of the post, for each job. */
  readonly took: readonly number[]
  /** In a run that counts: how often each thing was made or has run, and how often each system call was made. */
  readonly counts: Readonly<Record<string, number>>
}

/** Measures a process from {@link begin} to {@link end}. */
class Meter {
  readonly #isCounting: boolean
  readonly #counts: Record<string, number> = {}
  #before = this.#read()
  #strace: Promise<SystemCallCounter> | undefined

  constructor({ isCounting }: { readonly isCounting: boolean }) {
    this.#isCounting = isCounting
  }

  async begin(): Promise<void> {
    if (this.#isCounting) {
      this.#strace = SystemCallCounter.start()
      await this.#strace
      const types = new Map<number, string>()
      const count = (what: string) => {
        this.#counts[what] = (this.#counts[what] ?? 0) + 1
      }
      createHook({
        init: (id, type) => {
          if (type === 'Timeout' || type === 'Immediate') types.set(id, type)
          if (['Timeout', 'Immediate', 'PROMISE', 'TickObject'].includes(type)) count(`${type} made`)
        },
        before: (id) => {
          const type = types.get(id)
          if (type) count(`${type} ran`)
        },
      }).enable()
    }
    this.#before = this.#read()
  }

  async end(jobs: number, took: readonly number[] = []): Promise<LoneWork> {
    const [before, after] = [this.#before, this.#read()]
    const calls = await (await this.#strace)?.stop()
    return {
      ...{ jobs, took },
      cpu: after.cpu - before.cpu,
      switches: after.switches - before.switches,
      turns: after.turns - before.turns,
      counts: { ...this.#counts, ...calls },
    }
  }

  #read(): Pick<LoneWork, 'cpu' | 'switches' | 'turns'> {
    const { user, system } = process.cpuUsage()
    // Of the main thread; other threads wait for it.
    const status = readFileSync('/proc/self/status', 'utf8')
    const switches = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1])
    // Node.js has it since 20.18; the types do not know it yet.
    const { uvMetricsInfo }: { uvMetricsInfo?: { readonly loopCount: number } } = Object(performance.nodeTiming)
    return { cpu: user + system, switches, turns: uvMetricsInfo?.loopCount ?? Number.NaN }
  }
}

/** Counts the system calls of this process, with strace. */
class SystemCallCounter {
  readonly #child: ReturnType<typeof spawn>
  readonly #folder: string

  private constructor(child: ReturnType<typeof spawn>, folder: string) {
    this.#child = child
    this.#folder = folder
  }

  static async start(): Promise<SystemCallCounter> {
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-lone-'))
    const child = spawn('strace', ['-f', '-c', '-o', join(folder, 'calls'), '-p', String(process.pid)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    // It says so once it has attached to all threads.
    await once(child.stderr, 'data')
    return new SystemCallCounter(child, folder)
  }

  async stop(): Promise<Record<string, number>> {
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGINT')
    await ended
    const text = await readFile(join(this.#folder, 'calls'), 'utf8')
    await rm(this.#folder, { recursive: true })
    const counts: Record<string, number> = {}
    for (const [, calls, name] of text.matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?([a-z]\w+)$/gm))
      if (name !== undefined && name !== 'total') counts[`call ${name}`] = Number(calls)
    return counts
  }
}

interface Arguments {
  readonly uri: string
  readonly name: string
  readonly count: number
  readonly gap: number
  /** `counts` counts what is done; `idle` does nothing for `count` milliseconds; `warm` measures after many jobs; anything else measures. */
  readonly kind: string | undefined
}

/** Measures the posts of so many jobs, after those of the warm-up. */
async function measurePosts({ count, gap, kind }: Arguments, post: () => Promise<unknown>): Promise<LoneWork> {
  const warmUp = warmUpOf({ kind, gap })
  await apart(warmUp.jobs, warmUp.gap, post)
  const meter = new Meter({ isCounting: kind === 'counts' })
  const took: number[] = []
  await meter.begin()
  await apart(count, gap, async () => {
    const begin = now()
    await post()
    took.push(now() - begin)
  })
  return meter.end(count, took)
}

/** Measures the jobs of a worker, after those of the warm-up. */
class WorkMeter {
  readonly done = createDeferred<LoneWork>()
  readonly #meter: Meter
  readonly #count: number
  readonly #warmUps: number
  readonly #took: number[] = []
  #ended = 0

  constructor({ count, kind, gap }: Arguments) {
    this.#count = count
    this.#warmUps = warmUpOf({ kind, gap }).jobs
    this.#meter = new Meter({ isCounting: kind === 'counts' })
  }

  begun(at: number): void {
    this.#took.push(now() - at)
  }

  ended(): void {
    this.#ended += 1
    if (this.#ended === this.#warmUps) void this.#meter.begin()
    if (this.#ended === this.#warmUps + this.#count)
      this.#meter.end(this.#count, this.#took.slice(this.#warmUps)).then(this.done.resolve, this.done.reject)
  }
}

/** Measures a worker that has no jobs, for `count` milliseconds, after the work that follows its start. */
async function measureIdle({ count }: Arguments): Promise<LoneWork> {
  await pause(SETTLING_MS)
  const meter = new Meter({ isCounting: false })
  await pause(count)
  return meter.end(0)
}

/** The time after which the work that follows a start is over, in milliseconds. */
const SETTLING_MS = 3_000

type Role = (given: Arguments) => Promise<void>

const ROLES: Readonly<Record<string, Role>> = {
  'post board': async (given) => {
    await using board = await openBoard(given.uri)
    await whenTold(() => measurePosts(given, () => board.post('timed', { at: now() })))
  },

  'work board': async (given) => {
    const meter = new WorkMeter(given)
    const first = task('first', { requires: ['at'], execute: ({ at }: { at: number }) => meter.begun(at) })
    await using board = await openBoard(given.uri)
    await using persistence = await openPersistence('memory:')
    const flows = [linear('timed', input<{ at: number }>(), first)]
    await using conductor = await startConductor({ board, persistence, flows, concurrency: 8 })
    conductor.on('settled', () => meter.ended())
    await whenTold(() => (given.kind === 'idle' ? measureIdle(given) : meter.done.promise))
  },

  'post bullmq': async (given) => {
    const producer = await PEER_QUEUES.bullmq.produce(given.uri, given.name)
    await whenTold(() => measurePosts(given, () => producer.add({ n: 1, at: now() })))
    await producer.close()
  },

  'work bullmq': async (given) => {
    const meter = new WorkMeter(given)
    const work = ({ at = Number.NaN }) => {
      meter.begun(at)
      setImmediate(() => meter.ended())
    }
    const count = warmUpOf(given).jobs + given.count
    const consumer = await PEER_QUEUES.bullmq.consume(given.uri, given.name, { count, work })
    await whenTold(() => (given.kind === 'idle' ? measureIdle(given) : meter.done.promise))
    if (given.kind !== 'idle') await consumer.close()
    else process.exit()
  },
}

if (process.argv[1] === import.meta.filename) {
  const [role = '', system = '', uri = '', name = '', count, gap, kind] = process.argv.slice(2)
  const given = { uri, name, count: Number(count), gap: Number(gap), kind }
  await ROLES[`${role} ${system}`]?.(given)
}
