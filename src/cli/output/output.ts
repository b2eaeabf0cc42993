/** Writing results. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CliContext } from '../context.ts'
import { toPrintableJson } from './render/text.ts'

const LINES_PER_WRITE = 500

/** @throws the stream's error when the reader is gone: there is no use in going on */
export async function printLines(context: CliContext, lines: readonly string[]): Promise<void> {
  for (let start = 0; start < lines.length; start += LINES_PER_WRITE) {
    context.stdout.write(
      lines
        .slice(start, start + LINES_PER_WRITE)
        .map((line) => `${line}\n`)
        .join(''),
    )
    // A closed pipe is told between two turns.
    await nextTurn()
    context.stdout.failed.throwIfAborted()
  }
}

/** One object a line. */
export async function printJson(context: CliContext, values: readonly unknown[]): Promise<void> {
  await printLines(context, values.map(toPrintableJson))
}
