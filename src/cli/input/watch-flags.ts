/** The options of commands that repeat their output. */
import type { Command } from 'commander'

export interface WatchFlags {
  readonly watch?: boolean
  readonly interval?: string
}

export const DEFAULT_INTERVAL = '1s'

export function addWatchFlags(command: Command): Command {
  return command
    .option('--watch', 'repeat until Ctrl-C: redraw on a terminal, else print what has changed')
    .option('--interval <duration>', `with --watch, time between two reads (default: ${DEFAULT_INTERVAL})`)
}
