/** What a command may touch of the process it runs in. Tests hand it something else. */
import { createInterface } from 'node:readline/promises'
import type { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { INTERRUPTED } from './exit-codes.ts'

/** Whether the board, and the logbooks, are named by nothing but a config file that was found. */
export interface ChosenByFile {
  readonly board: boolean
  readonly persistence: boolean
}

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
  /** Throws for a module that a config file names and others could change: nobody has named either. */
  readonly assertModule?: ((module: string, file: string) => Promise<void>) | undefined
  /** What was chosen by a config file that nobody named: credentials of the environment are not for it. */
  readonly chosenByFile?: ChosenByFile | undefined
  /** From now until it is disposed Ctrl-C, SIGTERM and the end of the terminal are told here, and end nothing by themselves. */
  readonly listenForInterruption: () => Interruption
  /** Asks a question on the terminal and resolves with the line that is typed; absent where there is no terminal. */
  readonly ask?: (question: string) => Promise<string>
  /** From now until it is disposed, exceptions that nothing caught are reported by the caller, and do not end the process here. */
  readonly captureFaults: () => Disposable
}

/** A context that knows whether a command takes the faults of the process. */
export interface ProcessContext extends CliContext {
  readonly capturesFaults: boolean
}

export interface Interruption extends Disposable {
  readonly signal: AbortSignal
}

export interface Output {
  /** How wide the terminal is; undefined where it is none, and then nothing is cut to fit. */
  readonly columns: number | undefined
  /** How high it is, likewise. */
  readonly rows?: number | undefined
  /** Fires when nothing can be written any more, EPIPE say; its reason is the error. */
  readonly failed: AbortSignal
  write(text: string): void
  /** Resolves when all is written. @throws the error, where it failed */
  flush(): Promise<void>
}

export function processContext(): ProcessContext {
  let takers = 0
  const takeFaults = () => {
    takers += 1
    return {
      [Symbol.dispose]: () => {
        takers -= 1
      },
    }
  }
  return {
    captureFaults: takeFaults,
    get capturesFaults() {
      return takers > 0
    },
    readStdin: () => text(process.stdin),
    stdout: streamOutput(process.stdout),
    stderr: streamOutput(process.stderr),
    env: process.env,
    cwd: process.cwd(),
    listenForInterruption: processInterruption,
    ...(process.stdin.isTTY && process.stderr.isTTY ? { ask: askOnTerminal } : {}),
  }
}

/** Asks on standard error, so that results can be redirected. The end of the input (Ctrl-D) is an empty answer. */
async function askOnTerminal(question: string): Promise<string> {
  using lines = disposable(createInterface({ input: process.stdin, output: process.stderr }))
  const ended = new Promise<string>((resolve) => lines.interface.once('close', () => resolve('')))
  return await Promise.race([lines.interface.question(question), ended])
}

function disposable<T extends { close(): void }>(opened: T): Disposable & { readonly interface: T } {
  return { interface: opened, [Symbol.dispose]: () => opened.close() }
}

/** A second signal so soon, in milliseconds, is the same key, passed on by npm as well. */
const SAME_KEYPRESS_MS = 1_000

/** Whoever presses the key again, because nothing seems to happen, gets their way. */
function processInterruption(): Interruption {
  const controller = new AbortController()
  let since = Number.POSITIVE_INFINITY
  const interrupt = () => {
    if (performance.now() - since > SAME_KEYPRESS_MS) process.exit(INTERRUPTED)
    since = Math.min(since, performance.now())
    controller.abort(new Error('interrupted'))
  }
  for (const name of SIGNALS) process.on(name, interrupt)
  const leave = () => {
    for (const name of SIGNALS) process.off(name, interrupt)
  }
  return { signal: controller.signal, [Symbol.dispose]: leave }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export function streamOutput(stream: Writable & { readonly columns?: number; readonly rows?: number }): Output {
  const failure = new AbortController()
  // Without a listener a closed pipe would end the process with a stack trace.
  stream.on('error', (error) => failure.abort(error))
  return {
    get columns() {
      return stream.columns
    },
    get rows() {
      return stream.rows
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
