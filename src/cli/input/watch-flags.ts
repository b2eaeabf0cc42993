/** The options of commands that repeat their output. */
import type { Command } from 'commander'

export interface WatchFlags {
  readonly watch?: boolean
  readonly interval?: string
}

export const DEFAULT_INTERVAL = '1s'

export function addWatchFlags(command: Command): Command {
  return command
    .option('--watch', 'look again and again until Ctrl-C: redrawn on a terminal, else printed whenever it has changed')
    .option('--interval <duration>', `with --watch, how long between two looks (default: ${DEFAULT_INTERVAL})`)
}
