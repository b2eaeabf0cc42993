/** Checkpoints of jobs: the process of a conductor is killed directly after a save, and the next owner goes on there. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import {
  encrypted,
  input,
  linear,
  openBoard,
  openPersistence,
  startConductor,
  task,
  track,
  waitForJob,
} from '../../src/index.ts'
import { testDirectory } from '../persistence/directory/directories.ts'
import { compiled } from '../support/compiled.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { createDatabase, type PostgresDatabase } from '../support/postgres-database.ts'
import { usual as test, testRows } from '../variant.ts'
import { importing } from './checkpoint-flow.ts'

let server: PostgresDatabase

beforeAll(async () => {
  server = await createDatabase()
})
afterAll(() => server?.stop())

const postgres = (more: string) => `${server.uri}?schema=s_${randomUUID().replaceAll('-', '')}${more}`
const zookeeper = (path: string) => `zookeeper://${zookeeperHosts}${namespace('checkpoints')}${path}`

/** Where the board is, as the process that is killed and its next owner open it, and the logbooks. */
const PLACES: Readonly<Record<string, () => Promise<{ board: string; logbooks: string }>>> = {
  'on Postgres, with logbooks there': async () => ({ board: postgres('&sessionTimeout=3s'), logbooks: postgres('') }),
  'on Postgres, with logbooks in files': async () => ({
    board: postgres('&sessionTimeout=3s'),
    logbooks: `directory:${await testDirectory()}`,
  }),
  ...(zookeeperHosts
    ? {
        'on ZooKeeper, with logbooks there': async () => ({
          board: zookeeper('?sessionTimeout=3s'),
          logbooks: zookeeper('/logbooks'),
        }),
      }
    : {}),
}

testRows(Object.entries(PLACES), ([where]) => where === 'on Postgres, with logbooks there')(
  'a job %s goes on from its checkpoint',
  async (_where, place) => {
    const { board: uri, logbooks } = await place()
    await using board = await openBoard(uri)
    await using persistence = await openPersistence(logbooks)
    const job = await board.post(importing, { rows: 10, killAfter: 6 })
    const program = await compiled(join(import.meta.dirname, 'checkpoint-child.ts'))
    const doomed = spawn(process.execPath, [program, uri, logbooks], { stdio: 'inherit' })
    expect(await once(doomed, 'exit')).toEqual([null, 'SIGKILL'])
    const saved = { checkpoints: { import: { value: { row: 6 }, at: expect.any(Date) } } }
    expect(await track(job.ref, { board, persistence })).toMatchObject(saved)
    await using _nextOwner = await startConductor({ board, persistence, flows: [importing] })
    const ended = await waitForJob(job.ref, { board, persistence })
    expect(ended).toMatchObject({ status: 'done', results: { import: { first: 6, run: 2 } } })
    expect(ended).not.toHaveProperty('checkpoints')
  },
)

test('checkpoints and messages lie in the logbook as results do: encrypted', async () => {
  await using board = await openBoard('memory:')
  const uri = `memory:${randomUUID()}`
  await using persistence = await openPersistence(uri, { codec: encrypted({ key: Buffer.alloc(32, 7) }) })
  await using raw = await openPersistence(uri)
  const fail = task('fail', {
    execute: async (_args, { checkpoint, progress }) => {
      progress(0.5, 'hunter2')
      await checkpoint.save('hunter2')
      throw new Error('no answer')
    },
  })
  const flow = linear('fails', input(), fail)
  await using _conductor = await startConductor({ board, persistence, flows: [flow] })
  const job = await board.post(flow, {}, { maxAttempts: 1 })
  expect(await job.wait()).toBe('TRASHED')
  expect(await track(job.uuid, { board, persistence })).toMatchObject({
    status: 'trashed',
    checkpoints: { fail: { value: 'hunter2' } },
  })
  await expect(raw.getBook(job.book.uuid)).rejects.toThrow('was not given')
})
