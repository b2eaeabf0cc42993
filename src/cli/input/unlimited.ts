/** A slip that costs somebody an evening: `--timeout` is for opening the board, and what it was meant to limit is not. */
import type { Command } from 'commander'

export interface UnlimitedWait {
  /** `--timeout` was typed, and `--within` was not. */
  readonly endless?: boolean
}

export const UNLIMITED_WAIT_NOTICE =
  'waiting for as long as it takes: --timeout is for opening the board, --within limits the wait\n'

/** To be spread into the options of a command that waits. */
export function toUnlimitedWait(command: Command): UnlimitedWait {
  const { within } = command.opts<{ within?: string }>()
  return { endless: within === undefined && command.getOptionValueSourceWithGlobals('timeout') === 'cli' }
}
