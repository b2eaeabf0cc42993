/** Processes that share a file: one that dies, one that is stopped, several that write all the time, and what is left of them. */
import { readdir } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { type Job, openBoard } from '../../../../src/board/index.ts'
import { startNode } from '../../../support/node-process.ts'
import { usual as test, variant } from '../../../variant.ts'
import { type SqlitePlace, sqlitePlace } from './boards.ts'

const HOLDER = new URL('./holder-child.ts', import.meta.url)
const OPENER = new URL('./opener-child.ts', import.meta.url)
const BUSY = new URL('./busy-child.ts', import.meta.url)

let place: SqlitePlace

beforeEach(async () => {
  place = await sqlitePlace()
})

afterEach(() => place[Symbol.asyncDispose]())

/** Returns the names of the files beside the database, without its name. */
async function filesBeside(): Promise<string[]> {
  const name = basename(place.file)
  const names = await readdir(dirname(place.file))
  return names
    .filter((each) => each.startsWith(`${name}-`))
    .map((each) => each.slice(name.length + 1))
    .sort()
}

async function postAndHold(timeout: string, way?: string) {
  const board = await openBoard(place.uri)
  const job = await board.post('flow', {})
  const holder = await startNode(HOLDER, [`${place.uri}&sessionTimeout=${timeout}`, ...(way ? [way] : [])])
  await holder.says(`holding ${job.uuid}`)
  return { board, job, holder }
}

async function claimAgain(board: Awaited<ReturnType<typeof openBoard>>, job: Job): Promise<void> {
  const [claim] = await board.claimNext()
  expect(claim.job.uuid).toBe(job.uuid)
  await claim.consume()
}

describe('an owner', () => {
  test('that is killed frees its jobs at once, however long its session would last', async () => {
    const { board, job, holder } = await postAndHold('1h')
    await using _board = board
    holder.signal('SIGKILL')
    const [claim] = await board.claimNext()
    expect(claim.job.uuid).toBe(job.uuid)
    await claim.consume()
    // Nothing of the dead process is left.
    expect((await filesBeside()).filter((name) => name.startsWith('process-'))).toHaveLength(1)
    expect(place.query('SELECT count(*) AS count FROM sessions')).toEqual([{ count: 1 }])
  })

  test('that is stopped keeps its jobs until its session is over, and learns of it', async () => {
    const { board, job, holder } = await postAndHold('2s')
    await using _board = board
    await using _holder = holder
    holder.signal('SIGSTOP')
    await claimAgain(board, job)
    holder.signal('SIGCONT')
    await holder.says('lost')
  })

  test('whose process ends in order leaves no file', async () => {
    const { board, holder } = await postAndHold('1h')
    holder.signal('SIGTERM')
    expect(await holder.ended).toBe(0)
    await board.close()
    expect(await filesBeside()).toEqual(['bell'])
  })

  variant('that dies in its first moments leaves nothing that hinders others', async () => {
    const board = await openBoard(place.uri)
    await board.close()
    for (let round = 0; round < 3; round += 1) {
      await using next = await openBoard(place.uri)
      const job = await next.post('flow', {})
      await using holder = await startNode(HOLDER, [`${place.uri}&sessionTimeout=1h`, 'die'])
      await holder.ended
      await claimAgain(next, job)
    }
    expect(await filesBeside()).toEqual(['bell'])
  })
})

variant(
  'processes that open a new file at the same time, and open and close it again and again, never take each other for dead',
  async () => {
    const processes = await Promise.all([1, 2, 3, 4].map(() => startNode(OPENER, [place.uri, '15'])))
    try {
      await Promise.all(processes.map((each) => each.says('ready')))
      for (const each of processes) each.signal('SIGUSR2')
      expect(await Promise.all(processes.map((each) => each.ended))).toEqual([0, 0, 0, 0])
    } finally {
      await Promise.all(processes.map((each) => each[Symbol.asyncDispose]()))
    }
    expect(place.query('SELECT count(*) AS count FROM jobs')).toEqual([{ count: 60 }])
    expect(await filesBeside()).toEqual(['bell'])
  },
)

variant('processes that write all the time are served fairly', async () => {
  const processes = await Promise.all([1, 2, 3, 4].map(() => startNode(BUSY, [place.uri])))
  try {
    await Promise.all(processes.map((each) => each.says('ready')))
    for (const each of processes) each.signal('SIGUSR2')
    // A process that is given nothing never says so.
    await Promise.all(processes.map((each) => each.says('done 200')))
  } finally {
    await Promise.all(processes.map((each) => each[Symbol.asyncDispose]()))
  }
})

test('a change of another process is seen without its bell', async () => {
  await using here = await place.open()
  // As a process does that cannot ring, because its system allows no more open files.
  place.query("INSERT INTO changes (board, kind) SELECT id, 'paused' FROM boards RETURNING 1")
  await expect.poll(() => here.paused).toBe(true)
})
