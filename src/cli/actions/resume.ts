/** The work of `jobboard resume`: lets conductors claim again. */
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import type { SharedOptions } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printLines } from '../output/output.ts'

export async function resume(options: SharedOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  await board.resume()
  await printLines(context, [`claiming resumed on ${board.uri}`])
  return DONE
}
