/** `jobboard trash purge`: remove jobs for good. */
import type { Command } from 'commander'
import type { Run } from '../action.ts'
import { complain } from '../complaints.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED } from '../exit-codes.ts'
import { openTheBoard } from '../opening.ts'
import type { SharedOptions } from '../options.ts'
import { printLines } from '../output.ts'
import { addTrashChoice, chooseTrashed, type TrashChoice } from '../trash-choice.ts'

export interface TrashPurgeCommandOptions extends SharedOptions, TrashChoice {}

export function defineTrashPurge(trash: Command, run: Run): void {
  const command = trash
    .command('purge')
    .summary('remove jobs for good')
    .description('Removes jobs out of the trash for good. Each uuid that was purged is printed.')
  addTrashChoice(command)
    .addHelpText('after', '\nExample:\n  $ jobboard trash purge --older-than 30d')
    .action(run((context, command: Command) => trashPurge(command.args, command.optsWithGlobals(), context)))
}

/** What cannot be done with one is complained of, and the others go on. */
export async function trashPurge(
  uuids: readonly string[],
  options: TrashPurgeCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  await using opened = await openTheBoard(options, context, { create: false })
  const { board } = opened
  const chosen = await chooseTrashed(board, uuids, options)
  let failed = false
  for (const job of chosen) {
    try {
      await board.purge(job)
      await printLines(context, [job.uuid])
    } catch (error) {
      complain(error, context)
      failed = true
    }
  }
  return failed ? FAILED : DONE
}
