/** Reads a source of lines, each a JSON object, without keeping more than one line in memory. */
import { isUtf8 } from 'node:buffer'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { asError, InvalidArgument, messageOf } from '../../core/errors.ts'
import { parseJson } from '../../core/json.ts'
import type { CliContext } from '../context.ts'

/** The longest line that is parsed. No board takes a posting of this size. */
const MAX_LINE_BYTES = 8 * 1_024 * 1_024

/** A line that is not empty, with its number from 1, and its bytes; these are empty for a line that was too long. */
export type JsonLine = { readonly number: number; readonly bytes: Uint8Array } & (
  | { readonly value: Readonly<Record<string, unknown>> }
  | { readonly error: InvalidArgument }
)

/**
 * Opens a file, or standard input for `-`.
 *
 * @param options.onError called when a piece of it cannot be read, before the iteration throws the same error
 * @throws InvalidArgument when the file cannot be opened, or is a folder
 */
export async function openLines(
  file: string,
  context: Pick<CliContext, 'cwd' | 'openStdin'>,
  { onError }: { readonly onError: (error: Error) => void },
): Promise<AsyncIterable<Uint8Array>> {
  const toError = (error: unknown) => new InvalidArgument(`--from ${file} cannot be read: ${asError(error).message}`)
  const failed = (error: unknown) => {
    const reported = toError(error)
    onError(reported)
    return reported
  }
  if (file === '-') return reportErrors(context.openStdin(), failed)
  const path = resolve(context.cwd, file)
  const stream = createReadStream(path)
  try {
    await once(stream, 'open')
    if ((await stat(path)).isDirectory()) throw new Error('it is a folder')
  } catch (error) {
    stream.destroy()
    throw toError(error)
  }
  return reportErrors(stream, failed)
}

async function* reportErrors(
  source: AsyncIterable<Uint8Array>,
  report: (error: unknown) => Error,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* source
  } catch (error) {
    throw report(error)
  }
}

/** Yields the lines of the source, parsed; empty lines are left out. */
export async function* readJsonLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<JsonLine, void, undefined> {
  let number = 0
  for await (const bytes of splitLines(source)) {
    number += 1
    if (bytes === 'too long') {
      yield { number, bytes: Buffer.alloc(0), error: new InvalidArgument(`it is longer than ${MAX_LINE_BYTES} bytes`) }
      continue
    }
    // Without this check, each wrong byte would be posted as another character.
    if (!isUtf8(bytes)) yield { number, bytes, error: new InvalidArgument('it is not UTF-8: convert the file') }
    else {
      const text = bytes.toString('utf8').replace(/^\uFEFF/, '')
      if (text.trim() !== '') yield { number, bytes, ...parseLine(text) }
    }
  }
}

/** Yields the bytes of each line. A line that is too long is skipped as it is read. */
async function* splitLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer | 'too long', void, undefined> {
  let parts: Uint8Array[] = []
  let length = 0
  const end = () => {
    const line = length > MAX_LINE_BYTES ? ('too long' as const) : Buffer.concat(parts)
    parts = []
    length = 0
    return line
  }
  const add = (part: Uint8Array) => {
    length += part.length
    if (length <= MAX_LINE_BYTES) parts.push(part)
    else parts = []
  }
  for await (const chunk of source) {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, at))
      from = at + 1
      yield end()
    }
    if (from < chunk.length) add(chunk.subarray(from))
  }
  if (length > 0) yield end()
}

const NEWLINE = 10

function parseLine(text: string): { value: Record<string, unknown> } | { error: InvalidArgument } {
  try {
    const value: unknown = parseJson(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { value: value as Record<string, unknown> }
    return { error: new InvalidArgument(`it must be a JSON object, such as {"flow":"hello","store":{"name":"Ada"}}`) }
  } catch (error) {
    return { error: new InvalidArgument(`it ${messageOf(error)}`) }
  }
}
