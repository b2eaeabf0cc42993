/** The command `jobboard info`: shows the state of the board on one screen. */
import type { Command } from 'commander'
import type { JobBoard } from '../../board/index.ts'
import { Redactor } from '../../core/redaction.ts'
import type { InfoReader } from '../../views/internal.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { type JsonOptions, shared, withFlags } from '../input/flags.ts'
import { redactedKeys } from '../input/shared-options.ts'
import { openNamedBoard } from '../opening.ts'
import { render } from '../output/output.ts'
import { toPrintableJson } from '../output/render/text.ts'
import { type Frame, showFrames, WATCH_FLAGS, type WatchFlags } from '../output/watch.ts'

export function defineInfo(program: Command, run: RunAction): void {
  withFlags(program.command('info'), { ...shared('--json'), ...WATCH_FLAGS })
    .summary('show the state of the board')
    .description(
      'Shows how many jobs wait and run, by priority and by queue, how many are in the trash, which conductors are connected, how many of ' +
        'their slots are in use, which limits are stopped or have no room, and the jobs that have been running longest.',
    )
    .addHelpText('after', '\nExamples:\n  $ jobboard info\n  $ jobboard info --watch --interval 5s')
    .action(run(info))
}

async function info(options: JsonOptions & WatchFlags, context: CliContext): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  await using opened = await openNamedBoard(options, context, { create: false })
  using reader = await createReader(opened.board)
  const watched = options.watch === true && context.stdout.columns !== undefined
  const frame = async (): Promise<Frame> => {
    const view = redaction.texts(await reader.read())
    const content = toPrintableJson(view)
    const layout = { watched, rows: watched ? context.stdout.rows || undefined : undefined }
    if (options.json) return { content, lines: [content] }
    return { content, lines: await render(context, ({ infoLines }, screen) => infoLines(view, screen, layout)) }
  }
  await showFrames(frame, options, context)
  return DONE
}

/** Loads the reader. A separate function: TypeScript 6.0 does not rewrite the `.ts` of an import() beside an `await using`. */
async function createReader(board: JobBoard): Promise<InfoReader> {
  const { InfoReader } = await import('../../views/internal.ts')
  return new InfoReader(board)
}
