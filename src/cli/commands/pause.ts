/** The commands `jobboard pause` and `jobboard resume`: stop all conductors from claiming, and let them claim again. */
import type { Command } from 'commander'
import type { JobBoard } from '../../board/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { type FlagTable, type OptionsOf, once, withFlags } from '../input/flags.ts'
import { definedOnly, toPerson } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { printLines } from '../output/output.ts'
import { shellWord } from '../output/render/text.ts'

const FLAGS = {
  '--queue <name>': ['only the jobs of this queue', once()],
  '--reason <text>': 'reason for people, shown by jobboard info and the dashboard',
} satisfies FlagTable

const RESUME_FLAGS = { '--queue <name>': ['end the pause of this queue', once()] } satisfies FlagTable

type PauseCommandOptions = OptionsOf<typeof FLAGS>

export function definePause(program: Command, run: RunAction): void {
  withFlags(program.command('pause'), FLAGS)
    .summary('stop all conductors from claiming')
    .description(
      'Stops all conductors, on all machines, from claiming jobs of the board until it is resumed, also if they are restarted meanwhile. Running jobs continue.',
    )
    .addHelpText('after', "\nExample:\n  $ jobboard pause --reason 'the database moves'")
    .action(
      run(
        change(async (board, { queue, reason }, { env }) => {
          await board.pause(definedOnly({ queue, reason, by: toPerson(env, board) }))
          if (queue === undefined) return `claiming paused on ${board.uri}; jobboard resume ends the pause`
          return `claiming from queue ${queue} paused on ${board.uri}; jobboard resume --queue ${shellWord(queue)} ends the pause`
        }),
      ),
    )
}

export function defineResume(program: Command, run: RunAction): void {
  withFlags(program.command('resume'), RESUME_FLAGS)
    .summary('let conductors claim again')
    .description('Lets conductors claim again after a pause of the board, or of one queue.')
    .addHelpText('after', '\nExample:\n  $ jobboard resume --board zookeeper://127.0.0.1:2181/demo')
    .action(
      run(
        change(async (board, { queue }) => {
          const before = await board.pausedQueues()
          await board.resume(definedOnly({ queue }))
          if (queue !== undefined && !before.some((each) => each.queue === queue))
            return `queue ${queue} was not paused on ${board.uri}`
          const others = before.filter((each) => each.queue !== queue).map((each) => each.queue)
          const rest = others.length === 0 ? '' : `; still paused: ${others.map((name) => `queue ${name}`).join(', ')}`
          return `claiming${queue === undefined ? '' : ` from queue ${queue}`} resumed on ${board.uri}${rest}`
        }),
      ),
    )
}

/** Returns the work of a command that changes the board and prints what it did. */
function change(work: (board: JobBoard, options: PauseCommandOptions, context: CliContext) => Promise<string>) {
  return async (options: PauseCommandOptions, context: CliContext): Promise<ExitCode> => {
    await using opened = await openNamedBoard(options, context, { create: false })
    await printLines(context, [await work(opened.board, options, context)])
    return DONE
  }
}
