/** Names the end of a process that third-party native code has aborted, so that it is not taken for a failure of ours. */

/** As a shell reports them: 128 and the signal's number. */
const SIGNALS: Readonly<Record<number, string>> = { 132: 'SIGILL', 134: 'SIGABRT', 135: 'SIGBUS', 139: 'SIGSEGV' }

/**
 * Returns what to report where a process that has loaded the `zookeeper` package was ended by a signal that only native
 * code raises; undefined for every other end.
 */
export function addonAbort(exitCode: number): string | undefined {
  const signal = SIGNALS[exitCode]
  if (signal === undefined) return undefined
  return (
    `third-party native code (the package zookeeper, or what it does to libuv) ended its process by ${signal}; ` +
    'for its stack run `ulimit -c unlimited` before the tests, and `gdb node CORE`'
  )
}
