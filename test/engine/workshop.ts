/** What the tests of the engine share: a logbook in memory, looked at and tampered with, and tasks that leave traces. */
import { randomUUID } from 'node:crypto'
import { StorageFailure } from '../../src/core/errors.ts'
import { type Ending, Engine, type EngineOptions } from '../../src/engine/index.ts'
import { type AnyFlow, type AnyTask, type Context, task } from '../../src/flow/index.ts'
import { type FlowDetail, type FlowLog, openPersistence, type Transition } from '../../src/persistence/index.ts'

/** One flow's record, which run after run acquires. */
export class TaskRecorder implements AsyncDisposable {
  readonly #uuid = randomUUID()
  readonly #persistence = openPersistence('memory:')
  #run = 0
  /** What was written, one line a write, in all runs. */
  readonly writes: string[] = []

  /** The next run's log of a flow; every write is noted before it is passed on. */
  async acquire(flow: AnyFlow): Promise<FlowLog> {
    this.#run += 1
    const log = await (await this.#persistence).acquire({
      book: { uuid: this.#uuid, name: 'tests' },
      flow: { uuid: this.#uuid, name: flow.name, version: flow.version },
      run: this.#run,
      claim: `claim-${this.#run}`,
    })
    return intercepted(log, async (transition) => {
      this.writes.push(lineOf(transition))
      await log.write(transition)
    })
  }

  /** A new engine, as after the death of the last one. */
  async engine(flow: AnyFlow, options: Omit<EngineOptions, 'flow' | 'log'> = {}): Promise<Engine> {
    return new Engine({ flow, log: await this.acquire(flow), ...options })
  }

  async run(flow: AnyFlow, options: Omit<EngineOptions, 'flow' | 'log'> = {}): Promise<Ending> {
    return (await this.engine(flow, options)).run()
  }

  /** What is on record now. */
  async detail(): Promise<FlowDetail> {
    const [flow] = (await (await this.#persistence).getBook(this.#uuid)).flows
    if (!flow) throw new Error('nothing was acquired yet')
    return flow
  }

  /** The flow's state, then each atom's, as on record now. */
  async states(): Promise<string> {
    const { state, atoms } = await this.detail()
    return [state, ...atoms.map((atom) => `${atom.name} ${atom.state}`)].join(', ')
  }

  /** Puts a record there that no engine of today wrote. */
  async forge(flow: AnyFlow, transition: Transition): Promise<void> {
    await (await this.acquire(flow)).write(transition)
    this.writes.length = 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#persistence).close()
  }
}

/** A log whose `write` is another. */
export function intercepted(log: FlowLog, write: FlowLog['write']): FlowLog {
  return { flow: log.flow, write, close: () => log.close(), [Symbol.asyncDispose]: () => log.close() }
}

/**
 * A log that dies at the k-th write, counted from 1, and stays dead. The write may have been done all the same: that is
 * what a lost answer looks like.
 */
export function dyingAt(k: number, log: FlowLog, options: { done: boolean }): FlowLog {
  let writes = 0
  return intercepted(log, async (transition) => {
    writes += 1
    if (writes < k || (writes === k && options.done)) await log.write(transition)
    if (writes >= k) throw new StorageFailure(`died at write ${k}`, { retryable: true })
  })
}

function lineOf({ state, atoms = [] }: Transition): string {
  const changes = atoms.map((atom) => {
    const result = 'result' in atom ? `=${JSON.stringify(atom.result)}` : ''
    return `${atom.name} ${atom.state}${result}${atom.intention === 'EXECUTE' ? '' : ` (${atom.intention})`}`
  })
  return [...(state ? [state] : []), ...changes].join(', ')
}

/** Executes and reverts, noting both in `trace` as `a` and `-a`; provides its own name. */
export function tracing(
  name: string,
  trace: string[],
  behaviour: { during?: (ctx: Context) => unknown; reverting?: (ctx: Context) => unknown; requires?: string[] } = {},
): AnyTask {
  return task(name, {
    requires: behaviour.requires ?? [],
    provides: name,
    execute: async (_args: Record<string, unknown>, ctx) => {
      trace.push(name)
      await behaviour.during?.(ctx)
      return `${name}!`
    },
    revert: async (_args, ctx) => {
      trace.push(`-${name}`)
      await behaviour.reverting?.(ctx)
    },
  })
}

export function fails(message: string): () => never {
  return () => {
    throw new Error(message)
  }
}
