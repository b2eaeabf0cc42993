/** What the process' exit code says; scripts rely on these. */

export const DONE = 0
export const FAILED = 1
export const WRONG_USAGE = 2
/** As shells have it of what Ctrl-C ended. */
export const INTERRUPTED = 130

export type ExitCode = typeof DONE | typeof FAILED | typeof WRONG_USAGE | typeof INTERRUPTED
