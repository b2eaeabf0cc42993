/**
 * Power cuts. Two processes use a file, and their system calls are recorded. From these follows what can be on the disk if the power goes at any
 * moment. After each cut the file is opened: it is sound, nothing is there twice, and nothing that was acknowledged is lost.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { checkFile } from '../../../src/sqlite/index.ts'
import { compiled } from '../../support/compiled.ts'
import { count } from '../../support/counts.ts'
import { type Random, randomly } from '../../support/random.ts'
import { decode, hasStrace, readTrace, type SystemCall, trace } from '../../support/strace.ts'
import { checkBoard, checkBooks, readAccounts } from './acknowledged.ts'
import { DISK_CALLS, RecordedDisk } from './recorded-disk.ts'

const CUTS = count({ test: 25, long: 500 })
/** Of a file that may lose something: almost every cut does. */
const LOSSY_CUTS = count({ test: 10, long: 200 })
const ROUNDS = count({ test: 6, long: 30 })
const CHILD = new URL('./power-cut-child.ts', import.meta.url)

interface Said {
  readonly at: number
  readonly line: string
}

interface Recording {
  readonly disk: RecordedDisk
  readonly said: readonly Said[]
}

/** Runs the processes, and records what they do and say. */
async function record(
  folder: string,
  { synchronous, seed }: { synchronous: string; seed: number },
): Promise<Recording> {
  const here = join(folder, 'recorded')
  const log = join(folder, 'calls')
  await mkdir(here)
  const args = [
    await compiled(CHILD.pathname),
    join(here, 'jobs.db'),
    synchronous,
    String(seed),
    String(ROUNDS),
    'first',
  ]
  await trace({ command: [process.execPath, ...args], calls: DISK_CALLS, log, output: join(folder, 'output') })
  const calls = await readTrace(log)
  return { disk: new RecordedDisk(here, calls), said: calls.flatMap(toSaid) }
}

function toSaid({ name, args, begin }: SystemCall): Said[] {
  const [, digits = ''] = (name === 'write' && /^1<[^>]*>, "([^"]*)"/.exec(args)) || []
  return digits === '' ? [] : [{ at: begin, line: decode(digits).toString().trimEnd() }]
}

/** Picks a moment: at random, or just when an operation was acknowledged. */
function pickMoment({ disk, said }: Recording, random: Random): number {
  return random.next() < 0.5 ? random.between(disk.begin, disk.end) : random.pick(said).at
}

/** Opens what is left after a cut. Returns what is wrong, and what is lost. */
async function lookAfterCut(folder: string, { disk, said }: Recording, at: number, random: Random) {
  await mkdir(folder)
  // The next process builds this one anew.
  for (const [name, content] of disk.cut(at, random))
    if (!name.endsWith('-shm')) await writeFile(join(folder, name), content)
  const file = join(folder, 'jobs.db')
  const accounts = readAccounts(said.filter((each) => each.at <= at).map(({ line }) => line))
  const uri = `sqlite:${file}?synchronous=normal`
  await using board = await openBoard(uri)
  await using books = await openPersistence(uri)
  const damage = await checkFile(file)
  const found = [await checkBooks(books, accounts), await checkBoard(board, accounts)]
  return {
    wrong: [...damage, ...found.flatMap(({ wrong }) => wrong)],
    lost: found.flatMap(({ lost }) => lost),
  }
}

interface CutOptions {
  readonly synchronous: string
  readonly cuts: number
  readonly mayLose: boolean
}

/** Cuts the power many times. Returns the number of cuts after which something was lost. If it fails, it leaves the recording behind. */
async function cutOften({ synchronous, cuts, mayLose }: CutOptions): Promise<number> {
  const random = randomly()
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-power-'))
  const recording = await record(folder, { synchronous, seed: random.seed })
  const losses: number[] = []
  for (let cut = 0; cut < cuts; cut += 1) {
    const at = pickMoment(recording, random)
    const place = join(folder, `cut-${cut}`)
    const what = `JOBBOARD_SEED=${random.seed}, cut ${cut}, at line ${at} of ${join(folder, 'calls')}`
    const { wrong, lost } = await lookAfterCut(place, recording, at, random).catch((cause: unknown) => {
      throw new Error(`${what}: the file cannot be used`, { cause })
    })
    expect(wrong, what).toEqual([])
    if (!mayLose) expect(lost, what).toEqual([])
    losses.push(lost.length)
    await rm(place, { recursive: true })
  }
  await rm(folder, { recursive: true })
  const { syncs, changes } = recording.disk.counts
  const total = losses.reduce((sum, each) => sum + each, 0)
  const lossy = losses.filter((each) => each > 0).length
  const done = `${recording.said.length} lines, ${changes} changes, ${syncs} syncs`
  console.log(
    `power cuts (${synchronous}, JOBBOARD_SEED=${random.seed}): ${done}; ${total} losses in ${lossy} of ${cuts} cuts`,
  )
  return lossy
}

const isPossible = process.platform === 'linux' && (await hasStrace())

test.runIf(isPossible)('a power cut loses nothing that was acknowledged', async () => {
  expect(await cutOften({ synchronous: 'full', cuts: CUTS, mayLose: false })).toBe(0)
})

test.runIf(isPossible)(
  'with synchronous=normal a power cut may lose the last changes, and damages nothing',
  async () => {
    // If nothing were lost, the cuts would cut nothing.
    expect(await cutOften({ synchronous: 'normal', cuts: LOSSY_CUTS, mayLose: true })).toBeGreaterThan(0)
  },
)
