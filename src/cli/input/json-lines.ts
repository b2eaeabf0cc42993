/** Reads a source of lines, each a JSON object, without keeping more than one line in memory. */
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { InvalidArgument } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'

/** The longest line that is parsed. No board takes a posting of this size. */
const MAX_LINE_BYTES = 8 * 1_024 * 1_024

/** A line that is not empty, with its number from 1. */
export type JsonLine = { readonly number: number; readonly text: string } & (
  | { readonly value: Readonly<Record<string, unknown>> }
  | { readonly error: InvalidArgument }
)

/** Opens a file, or standard input for `-`. @throws InvalidArgument when the file cannot be opened */
export async function openLines(file: string, context: CliContext): Promise<AsyncIterable<Uint8Array>> {
  if (file === '-') return context.openStdin()
  const stream = createReadStream(resolve(context.cwd, file))
  await new Promise<void>((opened, failed) => {
    stream.once('open', () => opened())
    stream.once('error', (error) => failed(new InvalidArgument(`--from ${file} cannot be read: ${error.message}`)))
  })
  return stream
}

/** Yields the lines of the source, parsed; empty lines are left out. */
export async function* readJsonLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<JsonLine, void, undefined> {
  let number = 0
  for await (const bytes of splitLines(source)) {
    number += 1
    if (bytes === 'too long') {
      yield { number, text: '', error: new InvalidArgument(`it is longer than ${MAX_LINE_BYTES} bytes`) }
      continue
    }
    const text = bytes.toString('utf8').replace(/^\uFEFF/, '')
    if (text.trim() !== '') yield { number, text, ...parseLine(text) }
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

/** The parser's own error is left out: it quotes the line, which may have secrets. */
function parseLine(text: string): { value: Record<string, unknown> } | { error: InvalidArgument } {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { value: value as Record<string, unknown> }
    return { error: new InvalidArgument(`it must be a JSON object, such as {"flow":"hello","store":{"name":"Ada"}}`) }
  } catch {
    return { error: new InvalidArgument('it is not JSON') }
  }
}
