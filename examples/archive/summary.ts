/** The summary of a run, from the output folder and the trash. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { JobBoard } from 'jobboard'
import type { ManifestEntry } from './flow.ts'
import type { Output } from './output.ts'
import { printableText } from './printable.ts'
import type { Named, Tally } from './tally.ts'

export interface Summary {
  readonly files: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly seconds: number
  readonly jobsPerSecond: number
  readonly failures: readonly Named[]
  readonly leftOut: readonly Named[]
  /** The files whose jobs have not ended. */
  readonly unfinished: readonly string[]
  /** Whether the whole folder was listed. */
  readonly allFound: boolean
}

/** Writes `manifest.jsonl`, in the order of paths, and `summary.json`. */
export async function summarize(
  output: Output,
  facts: { tally: Tally; reasons: ReadonlyMap<string, string>; seconds: number; over: boolean },
): Promise<Summary> {
  const entries = await readManifest(output.manifest)
  await writeFile(
    output.manifestFile,
    Array.from(entries.values(), (entry) => `${JSON.stringify(entry)}\n`),
  )
  const { tally, reasons, seconds, over } = facts
  const failures: Named[] = [...tally.unlisted]
  const unfinished: string[] = []
  for (const [job, name] of tally.names) {
    if (entries.has(job)) continue
    const reason = reasons.get(job) ?? (tally.failed.has(job) ? 'its job is in the trash' : undefined)
    if (reason !== undefined) failures.push({ name, reason })
    else if (over) failures.push({ name, reason: `its job ${job} left the board and is not in the manifest` })
    else unfinished.push(name)
  }
  const archived = [...entries.values()]
  const summary: Summary = {
    files: archived.length,
    bytesIn: sum(archived.map(({ bytes }) => bytes)),
    bytesOut: sum(archived.map(({ archiveBytes }) => archiveBytes)),
    seconds: Math.round(seconds * 1_000) / 1_000,
    jobsPerSecond: Math.round((archived.length / Math.max(seconds, 0.001)) * 10) / 10,
    failures,
    leftOut: tally.leftOut,
    unfinished,
    allFound: tally.complete,
  }
  await writeFile(output.summaryFile, `${JSON.stringify(summary, null, 2)}\n`)
  return summary
}

/** Returns the reasons of this run's jobs in the trash. */
export async function readTrash(board: JobBoard, tally: Tally): Promise<Map<string, string>> {
  const reasons = new Map<string, string>()
  for await (const { uuid, reason, failure } of board.trashed()) {
    if (tally.names.has(uuid)) reasons.set(uuid, printableText(failure?.message ?? reason))
  }
  return reasons
}

/** Returns the records by job, in the order of paths. A job writes its record atomically, so each one is complete. */
async function readManifest(folder: string): Promise<Map<string, ManifestEntry>> {
  const entries: [string, ManifestEntry][] = []
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.json')) continue
    const entry: ManifestEntry = JSON.parse(await readFile(join(folder, name), 'utf8'))
    entries.push([name.slice(0, -'.json'.length), entry])
  }
  return new Map(entries.sort(([, a], [, b]) => Buffer.compare(pathOf(a), pathOf(b))))
}

function pathOf(entry: ManifestEntry): Buffer {
  return Buffer.from(entry.path, 'base64')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
