/** Opens the pool of child processes of a conductor or of `runFlow`. */
import { InvalidArgument } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { AnyFlow } from '../../flow/index.ts'
import { type PoolEvent, type PoolLimits, poolSettings } from '../../pool/index.ts'
import { IsolatedAtoms, isolatedFlows } from './isolated-atoms.ts'

/** The pool of child processes for isolated tasks. */
export interface ConductorPool extends PoolLimits {
  /**
   * The module that exports the same flows, and maybe `services`, or several of them: each child imports them. A URL, or a path relative to
   * the working directory. Code that exists only in this process cannot be sent to another.
   */
  readonly module: string | URL | readonly (string | URL)[]
  /** `declared` (the default): tasks and flows say what is isolated. `all`: every task is, unless it has `isolate: false`. */
  readonly isolate?: 'declared' | 'all'
  /** The destination of the lines that children print: into the log of the task (the default), or to this process's standard error. */
  readonly output?: 'log' | 'stderr'
}

export interface OpenPoolOptions {
  readonly flows: readonly AnyFlow[]
  /** The pool, or false for a process that isolates nothing. */
  readonly pool: ConductorPool | false | undefined
  /** The timeout of the session whose claims the tasks run under, in milliseconds; undefined without a board. */
  readonly sessionTimeout: number | undefined
  /** Returns for how many milliseconds the claims that the tasks run under are certainly held. */
  readonly sessionLeft: () => number
  readonly log: Logger
  readonly onEvent: (event: PoolEvent) => void
  readonly onRoom: () => void
  readonly onCodeChanged: (error: Error) => void
}

/**
 * Opens the pool, if there is one and flows have isolated tasks, and waits until its first child is ready.
 *
 * @throws InvalidArgument for invalid options, and for isolated tasks without a pool; ChildUnavailable when the first child cannot be
 * started
 */
export async function openPool(options: OpenPoolOptions): Promise<IsolatedAtoms | undefined> {
  const { flows, pool, sessionTimeout = 0, sessionLeft, ...rest } = options
  const [isolated] = isolatedFlows(flows)
  if (!pool) {
    if (!isolated || pool === false) return undefined
    throw new InvalidArgument(
      `flow ${isolated.name} has tasks that run in child processes: add pool: { module: './flows.js' }, a module that exports the flow, or ` +
        'pool: false to run them in this process, as tests do',
    )
  }
  const { module, isolate = 'declared', output = 'log', ...limits } = pool
  const modules: readonly unknown[] = Array.isArray(module) ? module : [module]
  if (
    modules.length === 0 ||
    !modules.every((each) => each instanceof URL || (typeof each === 'string' && each !== ''))
  )
    throw new InvalidArgument(
      "pool.module must be the path or the URL of the module with the flows, as in './flows.js', or a list of them",
    )
  if (isolate !== 'declared' && isolate !== 'all')
    throw new InvalidArgument(`pool.isolate must be 'declared' or 'all', got ${String(isolate)}`)
  if (output !== 'log' && output !== 'stderr')
    throw new InvalidArgument(`pool.output must be 'log' or 'stderr', got ${String(output)}`)
  const settings = poolSettings(limits)
  if (!isolated && isolate === 'declared') return undefined
  // Half of the session's timeout: the child is dead before the server could give the claim of a stopped process to another.
  const silenceMs = sessionTimeout / 2
  const sent = { flows, modules: modules as readonly (string | URL)[], isolate, output, settings }
  const atoms = new IsolatedAtoms({ ...rest, ...sent, silenceMs, workLeftMs: sessionLeft })
  try {
    await atoms.start()
    return atoms
  } catch (error) {
    await atoms[Symbol.asyncDispose]()
    throw error
  }
}
