/** Output of results. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CliContext } from '../context.ts'
import { toPrintableJson } from './render/text.ts'

const LINES_PER_WRITE = 500

/** Prints lines. @throws the stream's error when the reader has closed the pipe: further output is useless */
export async function printLines(context: CliContext, lines: readonly string[]): Promise<void> {
  for (let start = 0; start < lines.length; start += LINES_PER_WRITE) {
    context.stdout.write(
      lines
        .slice(start, start + LINES_PER_WRITE)
        .map((line) => `${line}\n`)
        .join(''),
    )
    // The error of a closed pipe is emitted in a later turn of the event loop.
    await nextTurn()
    context.stdout.failed.throwIfAborted()
  }
}

/** Prints one JSON object per line. */
export async function printJson(context: CliContext, values: readonly unknown[]): Promise<void> {
  await printLines(context, values.map(toPrintableJson))
}
