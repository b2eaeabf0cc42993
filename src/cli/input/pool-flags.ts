/** Options of the pool of child processes on the command line and in the config file. */
import type { Command } from 'commander'
import type { ConductorPool } from '../../conductor/index.ts'
import type { FlowModules } from './flows-module.ts'
import { countParser, definedOnly } from './shared-options.ts'

/** The options as they are on the command line; `pool` comes from the config file. */
export interface PoolFlags {
  readonly isolate?: boolean
  readonly poolMax?: number
  readonly pool?: Omit<ConductorPool, 'module'>
}

export function addPoolFlags(command: Command): void {
  command
    .option('--isolate', 'run every task in a child process, unless it has isolate: false')
    .option(
      '--pool-max <n>',
      'how many child processes run isolated tasks (default: one for each processor)',
      countParser('--pool-max'),
    )
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
