/** The file to which lines are written that were not posted. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import { asError, InvalidArgument } from '../../core/errors.ts'

export interface Rejects extends AsyncDisposable {
  add(line: Uint8Array): void
  /** Resolves when all lines are written. @throws InvalidArgument when they cannot be */
  end(): Promise<void>
}

export interface RejectsOptions {
  /** The file from which the lines are read; `-` for standard input. */
  readonly from: string
  readonly cwd: string
  /** Whether the call goes on after an earlier one: then the lines that this one has written stay in the file. */
  readonly isContinued: boolean
  /** Called when a line cannot be written. */
  readonly onError: (error: Error) => void
}

/**
 * Opens the file before the first line is posted: its content is replaced, except by a call that goes on. Returns nothing without a name.
 *
 * @throws InvalidArgument when it cannot be written, or is the file that is read
 */
export async function openRejects(name: string | undefined, options: RejectsOptions): Promise<Rejects | undefined> {
  if (name === undefined) return undefined
  const { from, cwd, isContinued, onError } = options
  const file = resolve(cwd, name)
  if (from !== '-' && (await isSameFile(file, resolve(cwd, from))))
    throw new InvalidArgument(`--rejects ${name} is the file that --from reads: name another one`)
  const toError = (error: unknown) =>
    new InvalidArgument(`--rejects ${name} cannot be written: ${asError(error).message}`)
  const stream = createWriteStream(file, { flags: isContinued ? 'a' : 'w' })
  await once(stream, 'open').catch((error: unknown) => {
    throw toError(error)
  })
  let failed: InvalidArgument | undefined
  stream.on('error', (error) => {
    failed ??= toError(error)
    onError(failed)
  })
  const end = async () => {
    stream.end()
    await finished(stream).catch(() => undefined)
    if (failed) throw failed
  }
  return {
    add: (line) => {
      if (failed) return
      stream.write(line)
      stream.write('\n')
    },
    end,
    [Symbol.asyncDispose]: () => end().catch(() => undefined),
  }
}

/** Returns whether both are one file, whatever they are called. A file that is not there is no other one. */
async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([one, other].map((file) => stat(file).catch(() => undefined)))
  return a !== undefined && b !== undefined && a.isFile() && a.dev === b.dev && a.ino === b.ino
}
