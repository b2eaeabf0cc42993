/** The history of a board in a file, which several processes write with options of their own. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../../../src/board/index.ts'

let folder: string
let uri: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'jobboard-sqlite-'))
  uri = `sqlite:${join(folder, 'jobs.db')}`
})

afterEach(() => rm(folder, { recursive: true, force: true }))

async function endJob(board: JobBoard): Promise<string> {
  const job = await board.post('flow', {})
  await (await board.claim(job)).consume()
  return job.uuid
}

test('the process that keeps few jobs removes the others, in whatever order processes end jobs', async () => {
  await using few = await openBoard(uri, { keepHistory: 20 })
  await using many = await openBoard(uri, { keepHistory: 10_000 })
  for (let round = 0; round < 150; round += 1) for (const board of [few, many]) await endJob(board)
  // Each job of the first board removes the oldest ones with a probability of one half.
  expect((await few.history({ limit: 1_000 })).length).toBeLessThan(150)
})

test('a job that ends again replaces its record', async () => {
  await using board = await openBoard(uri)
  const job = await board.post('flow', {})
  await (await board.claim(job)).trash()
  for await (const trashed of board.trashed()) await board.restore(trashed)
  await endJob(board)
  await (await board.claim(await board.find(job.uuid))).consume()
  expect((await board.history()).filter(({ uuid }) => uuid === job.uuid)).toMatchObject([
    { outcome: 'COMPLETE', runs: 2 },
  ])
})
