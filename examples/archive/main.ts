/**
 * Archives a folder: `npm run demo -- DIR`, or an existing folder without DIR. See USAGE in `options.ts`.
 *
 * Read first: `flow.ts`, the tasks of a file; `archive.ts`, how jobs are posted and waited for.
 */
import { describeError, InvalidArgument } from 'jobboard'
import { archive } from './archive.ts'
import { Interrupt } from './interrupt.ts'
import { assertFolder, readOptions, USAGE, UsageError } from './options.ts'
import { assertEmpty } from './output.ts'
import { printableText } from './printable.ts'
import { report } from './report.ts'

const WRONG_USAGE = 2
const FAILED = 1

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args, process.env)
  if (options === 'help') {
    console.log(USAGE)
    return 0
  }
  await assertFolder(options.folder)
  if (options.out !== undefined) await assertEmpty(options.out)
  using interrupt = new Interrupt()
  try {
    const result = await archive(options, interrupt)
    console.log(report(result))
    if (result.ending === 'interrupted') return interrupt.exitCode
    return result.ending === 'done' && result.summary.failures.length === 0 ? 0 : FAILED
  } catch (error) {
    if (!interrupt.signal.aborted) throw error
    console.error('interrupted')
    return interrupt.exitCode
  }
}

/** Prints an error in one line, and its stack only on request. */
function complain(error: unknown, options: { verbose: boolean }): number {
  if (options.verbose) console.error(error)
  else if (error instanceof UsageError) console.error(error.message)
  else console.error(printableText(describeError(error)))
  return error instanceof UsageError || error instanceof InvalidArgument ? WRONG_USAGE : FAILED
}

// The reader of the output may close it early, as `head` does; the work continues.
process.stdout.on('error', () => undefined)

const args = process.argv.slice(2)
process.exitCode = await main(args).catch((error: unknown) => complain(error, { verbose: args.includes('--verbose') }))
