/** The context of a command, and its exit code: the parts of the process that it may use, which tests replace. */
import { isUtf8 } from 'node:buffer'
import { createInterface } from 'node:readline/promises'
import type { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { DeclaredFlowSettings, DeclaredLimits, DeclaredSchedule, DeclaredSchedules } from '../board/index.ts'
import { InvalidArgument } from '../core/errors.ts'
import type { AnyFlow, FlowDefaults } from '../flow/index.ts'

/** The exit codes of the process; scripts rely on them. */
export const DONE = 0
export const FAILED = 1
export const WRONG_USAGE = 2
/** The exit code that shells report for a process that Ctrl-C ended. */
export const INTERRUPTED = 130

export type ExitCode = typeof DONE | typeof FAILED | typeof WRONG_USAGE | typeof INTERRUPTED

/**
 * Makes commander's action from the work of a command. The work gets the options of the command and of all commands; its
 * exit code becomes the program's.
 */
export type RunAction = <Options extends object>(
  work: (options: Options, context: CliContext, command: Command) => Promise<ExitCode>,
) => (...args: unknown[]) => Promise<void>

/** Whether board and logbooks are named only by a config file that was found, not by a user. */
export interface ChosenByFile {
  readonly board: boolean
  readonly persistence: boolean
  /** Whether JOBBOARD_ZOOKEEPER_AUTH has the credentials that the file itself gives. */
  readonly auth: boolean
}

/** What is known of the modules of flows. */
export interface KnownModules {
  /** The flows whose code is known; the stores of other flows are checked when a job is run. */
  readonly flows: readonly AnyFlow[]
  /** The schedules that the modules export; undefined where they were not loaded. */
  readonly schedules?: readonly DeclaredSchedule[] | undefined
}

/** What the config file says beside options. */
export interface FileSettings {
  /** The path of the file for people. */
  readonly shown: string
  /** The data of the file, with the chosen deployment; texts as they are written. */
  readonly config: object
  /**
   * Returns the limits that conductors set on their board; undefined where there are none.
   *
   * @param exported the limits of the modules of flows, which the file replaces by key
   * @throws InvalidArgument
   */
  limits(exported?: DeclaredLimits['declare']): DeclaredLimits | undefined
  /** Returns the settings of flows that conductors set on their board, in the same way. @throws InvalidArgument */
  flowSettings(exported?: DeclaredFlowSettings['declare']): DeclaredFlowSettings | undefined
  /** Returns the schedules that conductors put on their board: of the file, and of the modules, which the file replaces by id. @throws InvalidArgument */
  schedules(modules: KnownModules): Promise<DeclaredSchedules | undefined>
  /** Returns what the file says of a flow. @throws InvalidArgument */
  flowDefaults(flow: string): FlowDefaults | undefined
  /** Reads the file again; undefined if it is gone. @throws InvalidArgument with its mistakes */
  reread(): Promise<RereadSettings | undefined>
}

/** The file as it is now. */
export interface RereadSettings {
  /** The options of a conductor that the file sets. */
  readonly options: Readonly<Record<string, unknown>>
  readonly file: FileSettings
}

/** The part of the context that decides which board is opened, and with which credentials. */
export type BoardContext = Pick<CliContext, 'env' | 'chosenByFile' | 'boardChoices' | 'logbookAuth'>

export interface CliContext {
  /** Resolves with all of standard input. */
  readonly readStdin: () => Promise<string>
  /** Opens standard input, to be read piece by piece. */
  readonly openStdin: () => AsyncIterable<Uint8Array>
  /** The output for results only. */
  readonly stdout: Output
  /** The output for errors, warnings and progress. */
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working directory, an absolute path; relative names are resolved against it. */
  readonly cwd: string
  /** Throws for a module that other users could change, if only a config file names it, and no user named that file. */
  readonly assertModule?: ((module: string, file: string) => Promise<void>) | undefined
  /** The choices of a config file that no user named: credentials of the environment are not used for them. */
  readonly chosenByFile?: ChosenByFile | undefined
  /** The credentials of the first of several boards, for the logbooks of all: `user:password`. Each board has its own in its entry. */
  readonly logbookAuth?: string | undefined
  /** The boards of the config file, if it names several and the command takes one: a user has to choose. */
  readonly boardChoices?: readonly string[] | undefined
  /** What the config file says beside options; undefined without a file. */
  readonly configFile?: FileSettings | undefined
  /**
   * Listens for Ctrl-C, SIGTERM and the end of the terminal until the result is disposed: meanwhile they only abort its
   * signal.
   */
  readonly listenForInterruption: () => Interruption
  /** Calls the function at each SIGHUP, which does not end the process meanwhile, until the result is disposed. */
  readonly listenForHangUp?: (onHangUp: () => void) => Disposable
  /** Asks a question on the terminal and resolves with the answer; absent if there is no terminal. */
  readonly ask?: (question: string) => Promise<string>
  /**
   * Leaves uncaught exceptions to the caller until the result is disposed: meanwhile they do not end the process here.
   */
  readonly captureFaults: () => Disposable
}

/** A context that knows whether a command handles the uncaught exceptions of the process. */
export interface ProcessContext extends CliContext {
  readonly capturesFaults: boolean
}

export interface Interruption extends Disposable {
  readonly signal: AbortSignal
}

export interface Output {
  /** The width of the terminal; undefined if there is none, and then nothing is truncated. */
  readonly columns: number | undefined
  /** The height of the terminal; undefined if there is none. */
  readonly rows?: number | undefined
  /** A signal that aborts when nothing can be written any more, for example after EPIPE; its reason is the error. */
  readonly failed: AbortSignal
  write(text: string): void
  /** Resolves when everything is written. @throws the error, if writing failed */
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
    readStdin: () => readText(process.stdin),
    openStdin: () => process.stdin,
    stdout: streamOutput(process.stdout),
    stderr: streamOutput(process.stderr),
    env: process.env,
    cwd: process.cwd(),
    listenForInterruption: processInterruption,
    listenForHangUp: (onHangUp) => {
      process.on('SIGHUP', onHangUp)
      return { [Symbol.dispose]: () => process.off('SIGHUP', onHangUp) }
    },
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

/** The time during which a second signal counts as the same keypress, passed on by npm as well. */
const SAME_KEYPRESS_MS = 1_000

/** Turns signals into an abort. A user who presses the key again because nothing seems to happen ends the process. */
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

/** Reads a stream to its end. @throws InvalidArgument unless it is UTF-8: each wrong byte would be read as another character */
async function readText(stream: NodeJS.ReadableStream): Promise<string> {
  const bytes = await buffer(stream)
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw new InvalidArgument('standard input is not UTF-8: convert it')
}
