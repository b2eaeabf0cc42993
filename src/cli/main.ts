#!/usr/bin/env node
import { processContext } from './context.ts'
/** The executable: the process goes in, its exit code comes out. Nothing else here touches the process. */
import { reportError } from './output/error-report.ts'
import { run } from './run.ts'

const context = processContext()
const argv = process.argv.slice(2)

for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
  process.on(event, (error: unknown) => {
    // A conductor has jobs to give back first, and says it in its log.
    if (context.capturesFaults) return
    reportError(error, context, { verbose: argv.includes('--verbose') })
    process.exit(1)
  })
}

const exitCode = await run(argv, context)
await context.stderr.flush().catch(() => undefined)
// A flow's module may leave timers and sockets behind; they must not keep the command alive.
process.exit(exitCode)
