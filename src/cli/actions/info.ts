/** The work of `jobboard info`: shows the state of the board, once or repeatedly. */
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import type { SharedOptions } from '../input/shared-options.ts'
import type { WatchFlags } from '../input/watch-flags.ts'
import { openNamedBoard } from '../opening.ts'
import { infoLines } from '../output/render/info.ts'
import { toScreen } from '../output/render/screen.ts'
import { toPrintableJson } from '../output/render/text.ts'
import { type Frame, showFrames } from '../output/watch.ts'
import { InfoReader } from '../views/info-view.ts'

export interface InfoCommandOptions extends SharedOptions, WatchFlags {
  readonly json?: boolean
}

export async function info(options: InfoCommandOptions, context: CliContext): Promise<ExitCode> {
  await using opened = await openNamedBoard(options, context, { create: false })
  using reader = new InfoReader(opened.board)
  const watched = options.watch === true && context.stdout.columns !== undefined
  const frame = async (): Promise<Frame> => {
    const view = await reader.read()
    const content = toPrintableJson(view)
    const layout = { watched, rows: watched ? context.stdout.rows || undefined : undefined }
    return { content, lines: options.json ? [content] : infoLines(view, toScreen(context), layout) }
  }
  await showFrames(frame, options, context)
  return DONE
}
