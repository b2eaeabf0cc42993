/** The exit codes of the process; scripts rely on them. */

export const DONE = 0
export const FAILED = 1
export const WRONG_USAGE = 2
/** The exit code that shells report for a process that Ctrl-C ended. */
export const INTERRUPTED = 130

export type ExitCode = typeof DONE | typeof FAILED | typeof WRONG_USAGE | typeof INTERRUPTED
