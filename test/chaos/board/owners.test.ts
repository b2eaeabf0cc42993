/**
 * Many jobs, several owners; some of them are killed, one is stopped for longer than its session and goes on. Nobody's
 * board is asked what happened: the owners write down what they do, and a client of ZooKeeper sees every job go.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { deferred } from '../../../src/core/abort.ts'
import { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { zookeeperPlace } from '../../board/boards.ts'
import { count } from '../../support/counts.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { startNode } from '../../support/node-process.ts'

const JOBS = count({ test: 2_000, long: 50_000 })
const OWNERS = count({ test: 4, long: 8 })
const KILLED = count({ test: 1, long: 2 })
const POSTED_AT_ONCE = count({ test: 500, long: 1_000 })
const CHILD = new URL('./consumer-child.ts', import.meta.url)

interface Line {
  readonly what: string
  readonly uuid: string
  readonly run: number
  readonly pid: number
}

describe.skipIf(!zookeeperHosts)('owners that die, and one that only seems to', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'jobboard-owners-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  test('every job is consumed exactly once', async () => {
    await using place = await zookeeperPlace()
    const poster = await place.open({ who: 'poster' })
    const log = join(folder, 'log')
    const gone = await goneCounter(place.path)
    await using _witness = gone
    const owners = await Promise.all(
      Array.from({ length: OWNERS }, (_, index) => {
        const way = index <= KILLED ? 'holds' : 'works'
        return startNode(CHILD, [`${place.uri}?sessionTimeout=4s`, log, way])
      }),
    )
    try {
      await Promise.all(owners.map((owner) => owner.says('ready')))
      const [stopped, ...others] = owners
      const killed = others.slice(0, KILLED)
      const posted = new Set<string>()
      for (let next = 0; next < JOBS; next += POSTED_AT_ONCE) {
        const jobs = await Promise.all(Array.from({ length: POSTED_AT_ONCE }, () => poster.post('flow', {})))
        for (const { uuid } of jobs) posted.add(uuid)
        if (next > 0) continue
        await Promise.all([stopped, ...killed].map((owner) => owner?.says('holding')))
        stopped?.signal('SIGSTOP')
        for (const owner of killed) owner.signal('SIGKILL')
      }
      await gone.reached(JOBS)
      stopped?.signal('SIGCONT')
      await stopped?.says('learned')
      const lines = await linesOf(log)
      expect(lines.filter(({ what, pid }) => what === 'lost' && pid === stopped?.pid)).not.toEqual([])
      judge(lines, { posted, dead: new Set(killed.map(({ pid }) => pid)) })
      expect(gone.twice()).toEqual([])
      expect(await place.jobNodes()).toEqual([])
      expect(await place.trashNodes()).toEqual([])
    } finally {
      for (const owner of owners) owner.signal('SIGCONT')
      await Promise.all(owners.map((owner) => owner[Symbol.asyncDispose]()))
    }
  })
})

/** What the owners wrote, held against what must never be. */
function judge(
  lines: readonly Line[],
  { posted, dead }: { posted: ReadonlySet<string>; dead: ReadonlySet<number> },
): void {
  const done = new Map<string, Line>()
  const runs = new Map<string, number>()
  const starts = new Map<string, Line>()
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
    if (what === 'done') {
      if (done.has(uuid)) wrong.push(`${uuid} was done twice`)
      done.set(uuid, line)
    }
  }
  // One may have died between its job's end and its line about it.
  for (const uuid of posted) {
    if (!done.has(uuid) && !dead.has(starts.get(uuid)?.pid ?? 0)) wrong.push(`${uuid} is gone, and nobody did it`)
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

interface GoneCounter extends AsyncDisposable {
  /** Resolves when so many jobs have gone. */
  reached(jobs: number): Promise<void>
  /** Jobs that have gone more than once. */
  twice(): string[]
}

/** Sees the znodes of jobs go. */
async function goneCounter(path: string): Promise<GoneCounter> {
  const zookeeper = new ZooKeeper({ hosts: zookeeperHosts })
  await zookeeper.connect()
  const gone = new Map<string, number>()
  const missed: string[] = []
  let wanted = Number.POSITIVE_INFINITY
  const enough = deferred()
  await zookeeper.watch(
    path,
    { mode: 'recursive' },
    {
      events: (batch) => {
        for (const event of batch) {
          const name = event.path.slice(path.length + 1)
          if (event.type === 'deleted' && /^job\d+$/.test(name)) gone.set(name, (gone.get(name) ?? 0) + 1)
        }
        if (gone.size >= wanted) enough.resolve()
      },
      gap: () => missed.push('the witness was not connected all the time'),
    },
  )
  return {
    reached: async (jobs) => {
      wanted = jobs
      if (gone.size < wanted) await enough.promise
    },
    twice: () => [...missed, ...[...gone].filter(([, times]) => times > 1).map(([name]) => name)],
    [Symbol.asyncDispose]: () => zookeeper.close(),
  }
}
