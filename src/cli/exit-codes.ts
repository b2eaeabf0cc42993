/** What the process' exit code says; scripts rely on these three. */

export const DONE = 0
export const FAILED = 1
export const WRONG_USAGE = 2

export type ExitCode = typeof DONE | typeof FAILED | typeof WRONG_USAGE
