/** A slip that costs somebody an evening: `--timeout` is for opening the board, and what it was meant to limit is not. */
import type { Command } from 'commander'

export interface EndlessFlag {
  /** `--timeout` was typed, and `--within` was not. */
  readonly endless?: boolean
}

export const ENDLESS = 'waiting for as long as it takes: --timeout is for opening the board, --within limits the wait\n'

/** To be spread into the options of a command that waits. */
export function endlessOf(command: Command): EndlessFlag {
  const { within } = command.opts<{ within?: string }>()
  return { endless: within === undefined && command.getOptionValueSourceWithGlobals('timeout') === 'cli' }
}
