/** What a command may touch of the process it runs in. Tests hand it something else. */
import type { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'

export interface CliContext {
  /** All of standard input, to its end. */
  readonly readStdin: () => Promise<string>
  /** Results, and nothing else. */
  readonly stdout: Output
  /** Complaints. */
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute; what relative names are relative to. */
  readonly cwd: string
}

export interface Output {
  /** How wide the terminal is; undefined where it is none, and then nothing is cut to fit. */
  readonly columns: number | undefined
  /** Fires when nothing can be written any more, EPIPE say; its reason is the error. */
  readonly failed: AbortSignal
  write(text: string): void
  /** Resolves when all is written. @throws the error, where it failed */
  flush(): Promise<void>
}

export function processContext(): CliContext {
  return {
    readStdin: () => text(process.stdin),
    stdout: streamOutput(process.stdout),
    stderr: streamOutput(process.stderr),
    env: process.env,
    cwd: process.cwd(),
  }
}

export function streamOutput(stream: Writable & { readonly columns?: number }): Output {
  const failure = new AbortController()
  // Without a listener a closed pipe would end the process with a stack trace.
  stream.on('error', (error) => failure.abort(error))
  return {
    get columns() {
      return stream.columns
    },
    failed: failure.signal,
    write: (text) => {
      if (!failure.signal.aborted) stream.write(text)
    },
    flush: async () => {
      if (!failure.signal.aborted) await new Promise<void>((resolve) => stream.write('', () => resolve()))
      failure.signal.throwIfAborted()
    },
  }
}
