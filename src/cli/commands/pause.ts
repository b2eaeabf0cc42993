/** The commands `jobboard pause` and `jobboard resume`: stop all conductors from claiming, and let them claim again. */
import type { Command } from 'commander'
import type { JobBoard, QueuePause } from '../../board/index.ts'
import { InvalidArgument } from '../../core/errors.ts'
import { isNameOfQueue } from '../../core/job-names.ts'
import { Redactor } from '../../core/redaction.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { type FlagTable, type OptionsOf, once, withFlags } from '../input/flags.ts'
import { definedOnly, redactedKeys, toPerson } from '../input/shared-options.ts'
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
          if (queue === undefined) return [`claiming paused on ${board.uri}; jobboard resume ends the pause`]
          return [
            `claiming from queue ${queue} paused on ${board.uri}; jobboard resume --queue ${shellWord(queue)} ends the pause`,
          ]
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
        change(async (board, { queue, ...options }, context) => {
          const before = await board.pausedQueues()
          const isAbout = (each: QueuePause) => queue !== undefined && isNameOfQueue(each.queue, queue)
          const others = before.filter((each) => !isAbout(each)).map((each) => `queue ${each.queue}`)
          const rest = others.length === 0 ? '' : `; still paused: ${others.join(', ')}`
          if (queue !== undefined)
            return resumeQueue(queue, { board, rest, redaction: new Redactor(redactedKeys(options, context)) })
          await board.resume()
          return [`claiming resumed on ${board.uri}${rest}`]
        }),
      ),
    )
}

interface ResumeQueueOptions {
  readonly board: JobBoard
  /** The end of the line, about other queues. */
  readonly rest: string
  readonly redaction: Redactor
}

/** Ends the pause of a queue. Returns a line about it, and lines about what else stops its jobs, such as the pause of a pattern. @throws InvalidArgument */
async function resumeQueue(queue: string, { board, rest, redaction }: ResumeQueueOptions): Promise<string[]> {
  const { queueLimitKey, queueProblem } = await import('../../board/internal.ts')
  const problem = queueProblem(queue)
  if (problem !== undefined) throw new InvalidArgument(`resume: ${problem}`)
  const { wasHeld, stops } = await board.limits.resume(queueLimitKey(queue))
  const { stillStoppedLines } = await import('../limit-commands.ts')
  const still = stillStoppedLines(stops, redaction)
  const alone = still.length > 0 ? ' by its name' : ''
  if (!wasHeld) return [`queue ${queue} was not paused${alone} on ${board.uri}`, ...still]
  return [`claiming from queue ${queue} resumed on ${board.uri}${rest}`, ...still]
}

/** Returns the work of a command that changes the board and prints what it did. */
function change(
  work: (board: JobBoard, options: PauseCommandOptions, context: CliContext) => Promise<readonly string[]>,
) {
  return async (options: PauseCommandOptions, context: CliContext): Promise<ExitCode> => {
    await using opened = await openNamedBoard(options, context, { create: false })
    await printLines(context, await work(opened.board, options, context))
    return DONE
  }
}
