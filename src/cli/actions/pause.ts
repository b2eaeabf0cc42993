/** The work of `jobboard pause`: stops all conductors from claiming. */
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import type { SharedOptions } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printLines } from '../output/output.ts'

export async function pause(options: SharedOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  await board.pause()
  await printLines(context, [`claiming paused on ${board.uri}; jobboard resume ends the pause`])
  return DONE
}
