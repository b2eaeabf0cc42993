/** `jobboard trash restore`: put jobs back on the board. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'
import { complain } from '../complaints.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printLines } from '../output.ts'
import { addTrashChoice, chooseTrashed, type TrashChoice } from '../trash-choice.ts'

export interface TrashRestoreCommandOptions extends SharedOptions, TrashChoice {}

export function defineTrashRestore(trash: Command, run: Run): void {
  const command = trash
    .command('restore')
    .summary('put jobs back on the board')
    .description(
      'Puts jobs out of the trash back on the board, at the end of the queue, with their uuid and without their attempts. Each uuid that was restored is printed.',
    )
  addTrashChoice(command)
    .addHelpText('after', '\nExample:\n  $ jobboard trash restore --name hello')
    .action(run((context, command: Command) => trashRestore(command.args, command.optsWithGlobals(), context)))
}

/** What cannot be done with one is complained of, and the others go on. */
export async function trashRestore(
  uuids: readonly string[],
  options: TrashRestoreCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  const chosen = await chooseTrashed(board, uuids, options)
  let failed = false
  for (const job of chosen) {
    try {
      await board.restore(job)
      await printLines(context, [job.uuid])
    } catch (error) {
      complain(error, context)
      failed = true
    }
  }
  return failed ? FAILED : DONE
}
