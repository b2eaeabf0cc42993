/** The same for many things, one after the other: what cannot be done with one is complained of, and the others go on. */
import { complain } from './complaints.ts'
import type { CliContext } from './context.ts'
import { DONE, type ExitCode, FAILED } from './exit-codes.ts'
import { Progress } from './progress.ts'

export interface Each<T> {
  /** `purging`, say. */
  readonly what: string
  /** @returns false where there was nothing to do */
  readonly work: (thing: T) => Promise<boolean>
}

/** Prints the uuid of each with which it was done. */
export async function each<T extends { readonly uuid: string }>(
  things: readonly T[],
  { what, work }: Each<T>,
  context: CliContext,
): Promise<ExitCode> {
  using progress = new Progress(context, { what, total: things.length })
  let exitCode: ExitCode = DONE
  for (const thing of things) {
    try {
      if (await work(thing)) await progress.print(thing.uuid)
    } catch (error) {
      if (error === context.stdout.failed.reason) throw error
      progress.clear()
      complain(error, context)
      exitCode = FAILED
    }
    progress.step()
  }
  return exitCode
}
