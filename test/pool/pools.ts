/** Pools for tests, and what became of their processes. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished, vi } from 'vitest'
import { AbortFlag } from '../../src/core/async/abort-flag.ts'
import {
  ChildPool,
  type PoolEvent,
  type PoolLimits,
  type PoolOptions,
  poolSettings,
  type WorkOptions,
} from '../../src/pool/index.ts'
import { compiled } from '../support/compiled.ts'
import { isAlive, pidsFrom, sendSignal } from '../support/pids.ts'

export { isAlive, pidsFrom, sendSignal }

export const CHILD_MAIN = fileURLToPath(new URL('../../src/pool/child-main.ts', import.meta.url))

export interface TestPool extends AsyncDisposable {
  readonly pool: ChildPool
  readonly events: readonly PoolEvent[]
  readonly lines: readonly string[]
  /** Does work without a signal. */
  run(work: object, options?: Partial<WorkOptions>): Promise<unknown>
}

/** Opens a pool with the worker of the tests. */
export async function testPool(
  {
    silenceMs = 0,
    workLeftMs = () => Number.POSITIVE_INFINITY,
    assertFacts = () => undefined,
    ...limits
  }: PoolLimits & Partial<Pick<PoolOptions, 'silenceMs' | 'workLeftMs' | 'assertFacts'>> = {},
  { worker = new URL('./worker.mjs', import.meta.url).href, settings = {} as unknown, starts = true } = {},
): Promise<TestPool> {
  const events: PoolEvent[] = []
  const lines: string[] = []
  const pool = new ChildPool({
    ...poolSettings(limits),
    ...{ worker, settings, silenceMs, workLeftMs, assertFacts, program: await compiled(CHILD_MAIN) },
    onEvent: (event) => void events.push(event),
    onLine: (_, line) => void lines.push(line),
    onDroppedLines: (_, count) => void lines.push(`${count} dropped`),
  })
  if (starts) await startOrClose(pool)
  const run: TestPool['run'] = (work, options = {}) =>
    pool.run({
      ...{ work, onNote: () => undefined, onAsk: async () => undefined, stop: new AbortFlag(), kill: new AbortFlag() },
      ...{ graceMs: 200, isFresh: false, memory: undefined, onAssigned: () => undefined },
      ...options,
    })
  return { pool, events, lines, run, [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose]() }
}

/** Starts a pool. One that fails is closed: otherwise it would start children for as long as the process of the tests lives. */
async function startOrClose(pool: ChildPool): Promise<void> {
  try {
    await pool.start()
  } catch (error) {
    await pool[Symbol.asyncDispose]()
    throw error
  }
}

/** Returns the path of a file that does not exist yet. Its folder is removed when the test ends. */
export async function newFile(): Promise<string> {
  const file = join(await mkdtemp(join(tmpdir(), 'jobboard-pool-')), 'pids')
  onTestFinished(() => rm(dirname(file), { recursive: true, force: true }))
  return file
}

/** Resolves with the process ids that a worker has written, once there are so many. */
export async function pidsIn(file: string, count: number): Promise<number[]> {
  return vi.waitFor(
    () => {
      const pids = existsSync(file) ? pidsFrom(readFileSync(file, 'utf8')) : []
      if (pids.length < count) throw new Error(`${pids.length} of ${count} processes have begun`)
      return pids
    },
    { timeout: 30_000, interval: 10 },
  )
}

/** Resolves when none of the processes lives any more. */
export async function whenDead(pids: readonly number[]): Promise<void> {
  await vi.waitFor(
    () => {
      const alive = pids.filter(isAlive)
      if (alive.length > 0) throw new Error(`processes ${alive.join(', ')} are alive`)
    },
    { timeout: 30_000, interval: 20 },
  )
}
