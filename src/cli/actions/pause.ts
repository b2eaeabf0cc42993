/** What `jobboard pause` does: stop all conductors from claiming. */
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { openNamedBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printLines } from '../output.ts'

export async function pause(options: SharedOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const { board } = opened
  await board.pause()
  await printLines(context, [`claiming paused on ${board.uri}; jobboard resume ends that`])
  return DONE
}
