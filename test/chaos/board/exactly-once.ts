/**
 * Many jobs, several owners; some of them are killed, one is stopped for longer than its session and goes on. Nobody's
 * board is asked what happened: the owners write down what they do, and an observer of the backend's own sees every job go.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { count } from '../../support/counts.ts'
import { startNode } from '../../support/node-process.ts'

export const JOBS = count({ test: 1_000, long: 50_000 })
const OWNERS = count({ test: 4, long: 8 })
const KILLED = count({ test: 1, long: 2 })
const POSTED_AT_ONCE = count({ test: 250, long: 1_000 })
const CHILD = new URL('./consumer-child.ts', import.meta.url)

interface Line {
  readonly what: string
  readonly uuid: string
  readonly run: number
  readonly pid: number
}

/** Sees jobs go, by another way than boards do. */
export interface RemovalCounter {
  /** Resolves when so many jobs have gone. */
  reached(jobs: number): Promise<void>
  /** Jobs that have gone more than once, or why that cannot be told. */
  twice(): string[]
}

/** @param ownersUri with a session that ends soon */
export async function everyJobOnce(options: {
  readonly poster: JobBoard
  readonly ownersUri: string
  readonly gone: RemovalCounter
}): Promise<void> {
  const { poster, ownersUri, gone } = options
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-owners-'))
  const log = join(folder, 'log')
  const start = (way: 'holds' | 'works') => startNode(CHILD, [ownersUri, log, way])
  // Those that hold come first: on a quick board nothing would be left for them.
  const owners = await Promise.all(Array.from({ length: 1 + KILLED }, () => start('holds')))
  try {
    await Promise.all(owners.map((owner) => owner.says('ready')))
    const [stopped, ...killed] = owners
    const posted = new Set<string>()
    for (let next = 0; next < JOBS; next += POSTED_AT_ONCE) {
      const jobs = await Promise.all(Array.from({ length: POSTED_AT_ONCE }, () => poster.post('flow', {})))
      for (const { uuid } of jobs) posted.add(uuid)
      if (next > 0) continue
      await Promise.all(owners.map((owner) => owner.says('holding')))
      for (let number = owners.length; number < OWNERS; number++) owners.push(await start('works'))
      await Promise.all(owners.map((owner) => owner.says('ready')))
      stopped?.signal('SIGSTOP')
      for (const owner of killed) owner.signal('SIGKILL')
    }
    await gone.reached(JOBS)
    stopped?.signal('SIGCONT')
    await stopped?.says('learned')
    // Others see a job go before its owner has heard that it is done, and has written that down.
    const living = owners.filter((owner) => !killed.includes(owner))
    for (const owner of living) owner.signal('SIGTERM')
    await Promise.all(living.map((owner) => owner.ended))
    const lines = await linesOf(log)
    expect(lines.filter(({ what, pid }) => what === 'lost' && pid === stopped?.pid)).not.toEqual([])
    checkOwners(lines, { posted, dead: new Set(killed.map(({ pid }) => pid)) })
    expect(gone.twice()).toEqual([])
  } finally {
    for (const owner of owners) owner.signal('SIGCONT')
    await Promise.all(owners.map((owner) => owner[Symbol.asyncDispose]()))
    await rm(folder, { recursive: true, force: true })
  }
}

/** What the owners wrote, held against what must never be. */
function checkOwners(
  lines: readonly Line[],
  { posted, dead }: { posted: ReadonlySet<string>; dead: ReadonlySet<number> },
): void {
  const done = new Map<string, Line>()
  const runs = new Map<string, number>()
  const starts = new Map<string, Line>()
  const unknown = new Set<string>()
  const wrong: string[] = []
  for (const line of lines) {
    const { what, uuid, run, pid } = line
    if (!posted.has(uuid)) wrong.push(`${uuid} was never posted`)
    if (what === 'start') {
      if (run <= (runs.get(uuid) ?? 0)) wrong.push(`${uuid} was started twice as run ${run}`)
      if (done.has(uuid)) wrong.push(`${uuid} was started by ${pid} after it was done`)
      runs.set(uuid, run)
      starts.set(uuid, line)
    }
    if (what === 'unknown') unknown.add(uuid)
    if (what === 'done') {
      if (done.has(uuid)) wrong.push(`${uuid} was done twice`)
      done.set(uuid, line)
    }
  }
  // One may have died between its job's end and its line about it, or have received no answer.
  for (const uuid of posted) {
    if (!done.has(uuid) && !unknown.has(uuid) && !dead.has(starts.get(uuid)?.pid ?? 0))
      wrong.push(`${uuid} has left the board, and no owner did it`)
  }
  expect(wrong).toEqual([])
  console.log(`owners: ${done.size} of ${posted.size} jobs written down as done, ${lines.length} lines`)
}

async function linesOf(file: string): Promise<Line[]> {
  const text = await readFile(file, 'utf8')
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [what = '', uuid = '', run = '', pid = ''] = line.split(' ')
      return { what, uuid, run: Number(run), pid: Number(pid) }
    })
}
