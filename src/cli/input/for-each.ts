/** An operation on many things, some of them at a time: the failure of one is reported, and the others continue. */
import { InvalidArgument } from '../../core/errors.ts'
import { type CliContext, DONE, type ExitCode, FAILED } from '../context.ts'
import { reportError } from '../output/output.ts'
import type { Progress, ProgressOptions } from '../output/progress.ts'
import { escapeUnprintable } from '../output/render/text.ts'

/**
 * The number of concurrent operations: concurrent requests share a transaction or a round trip, so ten thousand take
 * seconds. More would only wait in a queue on the way to the server.
 */
const MAX_CONCURRENT = 64

export interface ForEachOptions<T> {
  /** The operation for the progress bar, for example `purging`. */
  readonly what: string
  /** The begin of the line with the total, for example `purged`. */
  readonly done: string
  /**
   * Does the work for one thing.
   *
   * @returns false if there was nothing to do; or the line to print instead of the uuid
   */
  readonly work: (thing: T) => Promise<boolean | string>
}

/** Does the work for each thing and prints its uuid; for several things, prints the total on standard error. */
export async function forEachWithProgress<T extends { readonly uuid: string }>(
  things: readonly T[],
  { what, done, work }: ForEachOptions<T>,
  context: CliContext,
): Promise<ExitCode> {
  using progress = await openProgress(context, { what, total: things.length })
  let succeeded = 0
  let failed = 0
  let next = 0
  const one = async (thing: T) => {
    try {
      const result = await work(thing)
      if (result === false) return
      succeeded += 1
      await progress.print(result === true ? thing.uuid : result)
    } catch (error) {
      if (error === context.stdout.failed.reason) throw error
      progress.clear()
      reportError(error, context)
      failed += 1
    } finally {
      progress.step()
    }
  }
  const lane = async () => {
    while (next < things.length) {
      const thing = things[next]
      next += 1
      if (thing) await one(thing)
    }
  }
  await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT, things.length) }, lane))
  progress.clear()
  if (things.length > 1) context.stderr.write(`${done} ${succeeded} of ${things.length}\n`)
  return failed > 0 ? FAILED : DONE
}

export interface Confirmation {
  /** The option `--yes`: proceed without a question. */
  readonly yes?: boolean | undefined
  /** The action without a terminal to ask on: `refuse` throws, `proceed` continues. */
  readonly offTerminal: 'refuse' | 'proceed'
}

/**
 * Asks on the terminal whether to do what `question` says; any answer but y or yes is a no.
 *
 * @throws InvalidArgument naming `--yes`, if there is no terminal and `offTerminal` is `refuse`
 * @example if (!(await confirm('cancel 3 jobs?', { yes, offTerminal: 'refuse' }, context))) return DONE
 */
export async function confirm(
  question: string,
  { yes = false, offTerminal }: Confirmation,
  context: CliContext,
): Promise<boolean> {
  if (yes) return true
  if (!context.ask) {
    if (offTerminal === 'proceed') return true
    throw new InvalidArgument(`${escapeUnprintable(question)} There is no terminal to ask on; add --yes`)
  }
  const answer = await context.ask(`${escapeUnprintable(question)} [y/N] `)
  if (/^y(es)?$/i.test(answer.trim())) return true
  context.stderr.write('nothing was changed\n')
  return false
}

/** Imports in a separate function: TypeScript 6.0 does not rewrite the `.ts` of an import() beside a `using`. */
async function openProgress(context: CliContext, options: ProgressOptions): Promise<Progress> {
  const { Progress } = await import('../output/progress.ts')
  return new Progress(context, options)
}
