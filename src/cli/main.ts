#!/usr/bin/env node
import { processContext } from './context.ts'
/**
 * The executable: runs the command line on the process, and exits with its code. No other file here uses the process.
 */
import { reportError } from './output/output.ts'
import { run } from './run.ts'

const context = processContext()
const argv = process.argv.slice(2)

for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    // A conductor gives its jobs back first, and writes the error to its log.
    if (context.capturesFaults) return
    reportError(error, context, { verbose: argv.includes('--verbose') })
    process.exit(1)
  })
}

const exitCode = await run(argv, context)
await context.stderr.flush().catch(() => undefined)
// A flow's module may leave timers and sockets open; they must not keep the command alive.
process.exit(exitCode)
