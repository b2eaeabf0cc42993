/** Temporary directories full of logbooks, and the processes that write to them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { compiled } from '../../support/compiled.ts'
import type { Order, Report } from './directory-child.ts'

export async function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'jobboard-logbooks-'))
}

/** Gone when the test is finished. */
export async function testDirectory(): Promise<string> {
  const directory = await temporaryDirectory()
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Every file below, relative. */
export async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
}

const CHILD = fileURLToPath(new URL('./directory-child.ts', import.meta.url))

/** A process that writes; gone when the test is finished. */
export class Writer implements AsyncIterable<Report> {
  readonly #process: ChildProcess
  readonly #exited: Promise<unknown>
  readonly #reports: AsyncIterator<string>

  private constructor(child: ChildProcess, reports: AsyncIterator<string>) {
    this.#process = child
    this.#exited = once(child, 'exit')
    this.#reports = reports
  }

  static async start(uri: string): Promise<Writer> {
    const child = spawn(process.execPath, [await compiled(CHILD), uri], { stdio: ['pipe', 'pipe', 'inherit'] })
    const writer = new Writer(child, createInterface({ input: child.stdout })[Symbol.asyncIterator]())
    onTestFinished(() => writer.kill())
    await writer.until('ready')
    return writer
  }

  order(order: Order): void {
    this.#process.stdin?.write(`${JSON.stringify(order)}\n`)
  }

  /** Resolves when it is gone; what it had told by then can still be read. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#exited
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Report> {
    for (;;) {
      const { done, value } = await this.#reports.next()
      if (done) return
      yield JSON.parse(value) as Report
    }
  }

  /** Reads reports up to and including the first of one of these; resolves to all of them. */
  async until(...told: Report['told'][]): Promise<Report[]> {
    const reports: Report[] = []
    for await (const report of this) {
      reports.push(report)
      if (told.includes(report.told)) return reports
    }
    throw new Error(`the writer ended without having told ${told.join(' or ')}`)
  }
}

export function acknowledgedOf(reports: readonly Report[]): string[] {
  return reports.flatMap((report) => (report.told === 'acknowledged' ? [report.atom] : []))
}
