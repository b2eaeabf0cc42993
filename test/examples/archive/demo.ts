/** The demo as its users run it: a process of its own, with folders that are gone when the test is. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { on, once } from 'node:events'
import { watch } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { gunzipSync } from 'node:zlib'
import { openPersistence } from 'jobboard'
import { onTestFinished } from 'vitest'
import type { ManifestEntry } from '../../../examples/archive/flow.ts'
import { compiled } from '../../support/compiled.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const FOLDER = join(ROOT, 'examples/archive')
const MAIN = join(FOLDER, 'main.ts')

/** How `npm run demo` starts it, also from a working directory that knows nothing of tsx; and how it starts sooner. */
const WAYS = {
  tsx: ['--import', createRequire(import.meta.url).resolve('tsx'), MAIN],
  compiled: [await compiled(MAIN, { starts: [join(FOLDER, 'conductor-process.ts')] })],
} as const

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-archive-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export class Demo {
  readonly #process: ChildProcess
  readonly #exited: Promise<[number | null, NodeJS.Signals | null]>
  readonly #waiting = new Set<() => void>()
  /** What it said so far. */
  output = ''
  errors = ''

  constructor(args: readonly string[], options: { cwd?: string; way?: keyof typeof WAYS } = {}) {
    const { cwd = ROOT, way = 'compiled' } = options
    this.#process = spawn(process.execPath, [...WAYS[way], ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#exited = once(this.#process, 'close') as Promise<[number | null, NodeJS.Signals | null]>
    const { stdout, stderr } = this.#process
    if (!stdout || !stderr) throw new Error('the demo has no output')
    createInterface({ input: stdout }).on('line', (line) => {
      this.output += `${line}\n`
      for (const wake of this.#waiting) wake()
    })
    stderr.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text
    })
    onTestFinished(async () => {
      this.#process.kill('SIGKILL')
      await this.#exited
    })
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name)
  }

  /** Resolves at the first line that matches. @throws Error when the demo ends without it */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    let over = false
    void this.#exited.then(() => {
      over = true
      for (const wake of this.#waiting) wake()
    })
    while (true) {
      const found = pattern.exec(this.output)
      if (found) return found
      if (over) throw new Error(`the demo ended and never said ${pattern}:\n${this.output}${this.errors}`)
      await new Promise<void>((wake) => this.#waiting.add(wake))
    }
  }

  async exitCode(): Promise<number | null> {
    const [code] = await this.#exited
    return code
  }

  /** Of the processes that its conductors are. */
  async conductorPids(): Promise<number[]> {
    await this.says(/^archiving .*$/m)
    return [...this.output.matchAll(/conductor \d+ \(process (\d+)\)/g)].map(([, pid]) => Number(pid))
  }
}

/** Resolves when so many entries are in the manifest. */
export async function untilRecorded(out: string, count: number): Promise<void> {
  const folder = join(out, 'manifest')
  await untilFolder(folder, (names) => names.filter((name) => name.endsWith('.json')).length >= count)
}

/** Resolves when what is in the folder is as it should be. */
export async function untilFolder(folder: string, wanted: (names: readonly string[]) => boolean): Promise<void> {
  const watcher = watch(folder)
  // Keeps what happens between two looks.
  const changes = on(watcher, 'change')
  while (!wanted(await readdir(folder))) await changes.next()
  watcher.close()
}

export async function manifestOf(out: string): Promise<ManifestEntry[]> {
  const lines = (await readFile(join(out, 'manifest.jsonl'), 'utf8')).split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line) as ManifestEntry)
}

export async function summaryOf(out: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(join(out, 'summary.json'), 'utf8')) as Record<string, unknown>
}

export function pathOf(entry: ManifestEntry): Buffer {
  return Buffer.from(entry.path, 'base64')
}

/** The entries whose hash is not that of the file, or not that of what is in the archive. */
export async function wrongEntries(folder: string, out: string): Promise<string[]> {
  const wrong: string[] = []
  for (const entry of await manifestOf(out)) {
    const source = await readFile(Buffer.concat([Buffer.from(`${folder}/`), pathOf(entry)]))
    const archived = gunzipSync(await readFile(join(out, entry.archive)))
    if (sha256(source) !== entry.sha256 || sha256(archived) !== entry.sha256) wrong.push(entry.name)
  }
  return wrong
}

/** How often each job was claimed, as its logbook has it. */
export async function runsOf(out: string, persistence = `directory:${join(out, 'logbooks')}`): Promise<number[]> {
  await using logbooks = await openPersistence(persistence)
  const runs: number[] = []
  for await (const { uuid } of logbooks.listBooks()) {
    const { flows } = await logbooks.getBook(uuid)
    runs.push(...flows.map(({ run }) => run))
  }
  return runs
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Files of different sizes, some thousand bytes each. */
export function contentOf(index: number): string {
  return `file ${index}\n`.repeat(100 + 37 * (index % 50))
}
