/** A board and logbooks in one file: the record that ends a flow and the settlement of its job wait for the disk once. */
import { randomUUID } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import { startConductor } from '../../../src/conductor/index.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { SqliteFile } from '../../../src/sqlite/file.ts'
import { LogSync } from '../../../src/sqlite/log-sync.ts'
import { sqlitePlace } from '../../board/backends/sqlite/boards.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

async function writesThatWait(settledOn: (uri: string) => string | undefined) {
  await using place = await sqlitePlace()
  await using board = await place.open()
  await using logbooks = await openPersistence(`sqlite:${place.file}`)
  const { job, settle } = await claimed(board)
  const uri = settledOn(place.uri)
  await using log = await logbooks.acquire({
    book: { uuid: job, name: 'book' },
    flow: { uuid: job, name: 'flow', version: '1.0' },
    run: 1,
    claim: randomUUID(),
    ...(uri === undefined ? {} : { settledOn: uri }),
  })
  const flush = vi.spyOn(LogSync.prototype, 'flush')
  const waits: boolean[] = []
  const count = async (work: Promise<unknown>) => {
    const before = flush.mock.calls.length
    await work
    waits.push(flush.mock.calls.length > before)
  }
  await count(log.write({ state: 'RUNNING' }))
  await count(log.write({ state: 'SUCCESS' }))
  const [flow] = (await logbooks.getBook(job)).flows
  expect(flow?.state).toBe('SUCCESS')
  await count(settle())
  return waits
}

async function claimed(board: Awaited<ReturnType<Awaited<ReturnType<typeof sqlitePlace>>['open']>>) {
  const { uuid } = await board.post('flow', {})
  const [claim] = await board.claimNext()
  return { job: uuid, settle: () => claim.consume() }
}

test('the write that ends a flow becomes durable with the settlement on the same file', async () => {
  expect(await writesThatWait((uri) => uri)).toEqual([true, false, true])
})

test('without a settlement, or with one elsewhere, each write waits for the disk', async () => {
  expect(await writesThatWait(() => undefined)).toEqual([true, true, true])
  expect(await writesThatWait(() => 'sqlite:/nowhere/other.db')).toEqual([true, true, true])
  expect(await writesThatWait(() => 'zookeeper://127.0.0.1:2181/demo')).toEqual([true, true, true])
})

test('a conductor names the board, so that a job waits for the disk once less', async () => {
  await using place = await sqlitePlace()
  const file = `sqlite:${place.file}`
  await using board = await place.open()
  const run = vi.spyOn(SqliteFile.prototype, 'run')
  const job = await board.post('work', {})
  await using _conductor = await startConductor({
    board,
    persistence: file,
    flows: [linear('work', input<object>(), task('step', { execute: () => undefined }))],
  })
  expect(await job.wait()).toBe('COMPLETE')
  expect(run.mock.calls.filter(([, options]) => options?.waitsForDisk === false)).toHaveLength(1)
})
