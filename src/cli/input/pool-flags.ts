/** Options of the pool of child processes on the command line and in the config file. */
import type { ConductorPool } from '../../conductor/index.ts'
import { count, type FlagTable, type FlagValues } from './flags.ts'
import type { FlowModules } from './flows-module.ts'
import { definedOnly } from './shared-options.ts'

/** The flags for isolated tasks. */
export const POOL_FLAGS = {
  '--isolate': 'run every task in a child process, unless it has isolate: false',
  '--pool-max <n>': ['how many child processes run isolated tasks (default: one for each processor)', count()],
} satisfies FlagTable

/** The options as they are on the command line; `pool` comes from the config file. */
export interface PoolFlags extends FlagValues<typeof POOL_FLAGS> {
  readonly pool?: Omit<ConductorPool, 'module'>
}

/** Returns the pool for the flows of a module; nothing is started where no task is isolated. */
export function toPool({ isolate, poolMax, pool }: PoolFlags, { urls, execArgv }: FlowModules): ConductorPool {
  // A smaller greatest number than the config file's `min` is what the user wants now.
  const min = poolMax === undefined || pool?.min === undefined ? pool?.min : Math.min(pool.min, poolMax)
  return {
    ...pool,
    module: urls,
    ...definedOnly({ execArgv, min, max: poolMax, isolate: isolate ? ('all' as const) : undefined }),
  }
}
