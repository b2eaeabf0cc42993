/** A note for a frequent mistake: `--timeout` limits the opening of the board, and does not limit the wait. */
import type { Command } from 'commander'

export interface UnlimitedWait {
  /** Whether `--timeout` was given without `--within`. */
  readonly endless?: boolean
}

export const UNLIMITED_WAIT_NOTICE =
  'waiting without a limit: --timeout limits the opening of the board, --within limits the wait\n'

/** Returns the properties to spread into the options of a command that waits. */
export function toUnlimitedWait(command: Command): UnlimitedWait {
  const { within } = command.opts<{ within?: string }>()
  return { endless: within === undefined && command.getOptionValueSourceWithGlobals('timeout') === 'cli' }
}
