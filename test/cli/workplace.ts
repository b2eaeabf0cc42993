/**
 * A folder of a user's own, with a board, logbooks, and the command line as it is shipped: called in this process, where
 * it takes a few milliseconds, or started as one of its own, which takes a fifth of a second and more.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable, type Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { ensureBuilt, MAIN, ROOT } from '../support/build.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'

export interface Outcome {
  /** Of a process that a signal ended, null. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
  /** Standard input that is read piece by piece, in this process. */
  readonly pieces?: AsyncIterable<Uint8Array>
  /** Where it is called, in this process; the folder of the workplace by default. */
  readonly cwd?: string
  /** As wide as a terminal; in a pipe by default. Not of a process, which has none. */
  readonly columns?: number
  /** As high as a terminal. */
  readonly rows?: number
  /** Presses Ctrl-C, in this process. */
  readonly interrupt?: AbortSignal
  /** Answers a question of the command line, as on a terminal; without it there is none. */
  readonly answer?: (question: string) => string
  /** Told whatever is written to standard output, in this process, as it comes; and to standard error. */
  readonly heard?: (text: string) => unknown
  readonly complained?: (text: string) => unknown
}

export interface CliFolder extends AsyncDisposable {
  readonly cwd: string
  /** Of the board, where it is in ZooKeeper. */
  readonly path: string
  readonly board: string
  readonly persistence: string
  write(name: string, content: string): Promise<void>
  /** In this process, with the board and the logbooks in the environment. */
  jobboard(args: readonly string[], options?: RunOptions): Promise<Outcome>
  /** Without them. */
  bare(args: readonly string[], options?: RunOptions): Promise<Outcome>
  /** As `jobboard`, in a process of its own: where signals, file descriptors or the end of the process matter. */
  spawned(args: readonly string[], options?: RunOptions): Promise<Outcome>
  /** @param options.folder the folder below the workplace in which it is started */
  start(args: readonly string[], options?: Pick<RunOptions, 'env'> & { readonly folder?: string }): Running
}

export interface Running {
  readonly process: ChildProcessByStdio<Writable, Readable, Readable>
  readonly ended: Promise<Outcome>
  /** Resolves once standard output has it. @throws Error when the process ends first */
  says(words: string): Promise<void>
  /** All of standard output so far. */
  heard(): string
  /** Resolves with the next line of its log that contains the words. @throws Error when the process ends first */
  logs(words: string): Promise<Record<string, unknown>>
}

const started = new Set<Running['process']>()

/**
 * @param options.tsx whether TypeScript can be had there
 * @param options.board its URI; one in ZooKeeper by default
 */
export async function createCliFolder(options: { tsx?: boolean; board?: string } = {}): Promise<CliFolder> {
  await ensureBuilt()
  const cwd = await realpath(await mkdtemp(join(tmpdir(), 'jobboard-cli-')))
  await link(cwd, { jobboard: ROOT, ...(options.tsx ? { tsx: join(ROOT, 'node_modules/tsx') } : {}) })
  const path = namespace('cli')
  const board = options.board ?? `zookeeper://${zookeeperHosts}${path}`
  const persistence = `directory:${join(cwd, 'logbooks')}`
  const named = { JOBBOARD_BOARD: board, JOBBOARD_PERSISTENCE: persistence }
  const bare: CliFolder['bare'] = (args, options = {}) => runCommand(args, { cwd, ...options })
  const spawned: CliFolder['spawned'] = (args, { env = {}, stdin = '' } = {}) => {
    const running = launch(args, { cwd, env: { ...named, ...env } })
    running.process.stdin.end(stdin)
    return running.ended
  }
  return {
    cwd,
    path,
    board,
    persistence,
    write: async (name, content) => {
      await mkdir(dirname(join(cwd, name)), { recursive: true })
      await writeFile(join(cwd, name), content)
    },
    bare,
    jobboard: (args, given = {}) => bare(args, { ...given, env: { ...named, ...given.env } }),
    spawned,
    start: (args, { env = {}, folder = '.' } = {}) =>
      launch(args, { cwd: join(cwd, folder), env: { ...named, ...env } }),
    [Symbol.asyncDispose]: () => rm(cwd, { recursive: true, force: true }),
  }
}

type Run = typeof import('../../src/cli/run.ts')['run']

/** Node's own `require`, past whatever the tests' runner makes of modules: what is called is what is shipped. */
function shippedRun(): Run {
  const { run }: { run: Run } = createRequire(import.meta.url)(join(dirname(MAIN), 'run.js'))
  return run
}

async function runCommand(args: readonly string[], options: RunOptions & { readonly cwd: string }): Promise<Outcome> {
  const { cwd, env = {}, stdin = '', columns, rows, interrupt = new AbortController().signal } = options
  const { heard, complained, answer, pieces = Readable.from([Buffer.from(stdin)]) } = options
  const [stdout, stderr] = [collector({ columns, rows }, heard), collector({ columns, rows }, complained)]
  const exitCode = await shippedRun()(args, {
    readStdin: async () => stdin,
    openStdin: () => pieces,
    stdout,
    stderr,
    env,
    cwd,
    listenForInterruption: () => ({ signal: interrupt, [Symbol.dispose]: () => undefined }),
    ...(answer ? { ask: async (question: string) => answer(question) } : {}),
    captureFaults: () => ({ [Symbol.dispose]: () => undefined }),
  })
  return { exitCode, stdout: stdout.text(), stderr: stderr.text() }
}

function collector(
  { columns, rows }: { readonly columns: number | undefined; readonly rows: number | undefined },
  heard: (text: string) => unknown = () => undefined,
) {
  const written: string[] = []
  return {
    columns,
    rows,
    failed: new AbortController().signal,
    write: (text: string) => {
      written.push(text)
      heard(text)
    },
    flush: async () => undefined,
    text: () => written.join(''),
  }
}

/** Ends what a failed test left running. */
export function killRemaining(): void {
  for (const child of started) child.kill('SIGKILL')
}

/** Packages as `npm install` would have put them there. */
async function link(cwd: string, packages: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(join(cwd, 'node_modules'))
  for (const [name, target] of Object.entries(packages)) await symlink(target, join(cwd, 'node_modules', name))
}

function launch(
  args: readonly string[],
  { cwd, env }: { cwd: string; env: Readonly<Record<string, string>> },
): Running {
  const { PATH = '' } = process.env
  const usual = { PATH, TMPDIR: tmpdir() }
  const child = spawn(process.execPath, [MAIN, ...args], { cwd, env: { ...usual, ...env }, stdio: 'pipe' })
  started.add(child)
  // Whoever does not read its standard input closes it under our hands.
  child.stdin.on('error', () => undefined)
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  const ended = collectOutcome(child).finally(() => started.delete(child))
  return {
    process: child,
    ended,
    says: (words) => waitForOutput(child, words, ended),
    heard: () => said,
    logs: (words) => waitForLog(child, words, ended),
  }
}

async function waitForLog(
  child: Running['process'],
  words: string,
  ended: Promise<Outcome>,
): Promise<Record<string, unknown>> {
  let rest = ''
  return new Promise((resolve, reject) => {
    const listen = (chunk: Buffer) => {
      const lines = `${rest}${chunk}`.split('\n')
      rest = lines.pop() ?? ''
      const found = lines.find((line) => line.includes(words))
      if (found === undefined) return
      child.stderr.off('data', listen)
      resolve(JSON.parse(found))
    }
    child.stderr.on('data', listen)
    ended.then(
      ({ stderr }) => reject(new Error(`it ended without logging ${JSON.stringify(words)}: ${stderr}`)),
      reject,
    )
  })
}

async function collectOutcome(child: Running['process']): Promise<Outcome> {
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout).catch(() => ''),
    text(child.stderr),
    once(child, 'close'),
  ])
  return { exitCode, stdout, stderr }
}

async function waitForOutput(child: Running['process'], words: string, ended: Promise<Outcome>): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      said += chunk
      if (said.includes(words)) resolve()
    })
    ended.then(({ stderr }) => reject(new Error(`it ended without saying ${JSON.stringify(words)}: ${stderr}`)), reject)
  })
}

/** What `--json` printed. */
export function jsonLines(text: string): unknown[] {
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map((line): unknown => JSON.parse(line))
}

/** A module with a flow that works and one that cannot. */
export const FLOWS = `
import { input, linear, NonRetryable, task } from 'jobboard'

const greet = task('greet', { requires: ['name'], provides: 'text', execute: async ({ name }) => 'Hello, ' + name })
const print = task('print', { requires: ['text'], execute: async () => undefined })
const refuse = task('refuse', { execute: async () => { throw new NonRetryable('the paper\\nis out') } })

export const hello = linear({ name: 'hello', version: '2.1' }, input(), greet, print)
export default [linear('refused', input(), refuse)]
`
