/** `logbook list` where one logbook among others is damaged: that one is reported, the others are shown, on every store. */
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { encode } from '../../src/core/codec.ts'
import { openPersistence } from '../../src/index.ts'
import { encodeFrame } from '../../src/persistence/directory/records.ts'
import { encodeName, shardName } from '../../src/persistence/names.ts'
import { ZooKeeper } from '../../src/zookeeper/index.ts'
import { filesBelow } from '../persistence/directory/directories.ts'
import { atom, requestOf } from '../persistence/flows.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { type CliFolder, createCliFolder, jsonLines } from './workplace.ts'

const [GOOD, BAD, OTHER] = [randomUUID(), randomUUID(), randomUUID()]
const ATOMS = { atoms: 5 }

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
})
afterEach(async () => place[Symbol.asyncDispose]())

/** Keeps three logbooks there, damages one, and looks at what is listed. */
async function expectOnlyOneMissing(uri: string, damage: () => Promise<void>): Promise<void> {
  {
    await using persistence = await openPersistence(uri)
    for (const uuid of [GOOD, BAD, OTHER]) {
      await using log = await persistence.acquire(requestOf(uuid, 1))
      await log.write({ state: 'SUCCESS', atoms: [atom('one')] })
    }
  }
  await damage()
  const listed = ['logbook', 'list', '--persistence', uri]
  const { stdout, stderr, exitCode } = await place.jobboard([...listed, '--json'])
  expect((jsonLines(stdout) as { uuid: string }[]).map(({ uuid }) => uuid).toSorted()).toEqual([GOOD, OTHER].toSorted())
  expect(stderr).toMatch(/^jobboard: [^\n]*damaged[^\n]*\n$/)
  expect(stderr).toContain(BAD)
  expect(exitCode).toBe(1)
  const table = await place.jobboard(listed)
  for (const uuid of [GOOD, OTHER]) expect(table.stdout).toContain(uuid.slice(0, 8))
  expect([table.stderr, table.exitCode]).toEqual([stderr, 1])
}

test('in a directory', async () => {
  const root = join(place.cwd, 'logbooks')
  await expectOnlyOneMissing(`directory:${root}`, async () => {
    const log = (await filesBelow(root)).find((file) => file.includes(`/${BAD}/`) && file.endsWith('1.log')) ?? ''
    const at = new Date()
    const flow = {
      uuid: BAD,
      name: 'flow',
      version: '1.0',
      state: 'SUCCESS',
      meta: {},
      run: 1,
      claim: 'claim',
      ...ATOMS,
    }
    await writeFile(
      join(root, log),
      encodeFrame({ format: 1, flow: { ...flow, states: [], createdAt: at, updatedAt: at } }),
    )
  })
})

test.skipIf(!zookeeperHosts)('in ZooKeeper', async () => {
  const path = `${namespace('cli')}/logbooks`
  await expectOnlyOneMissing(`zookeeper://${zookeeperHosts}${path}`, async () => {
    const zookeeper = new ZooKeeper({ hosts: zookeeperHosts })
    await zookeeper.connect()
    const name = encodeName(BAD)
    const damaged = encode({ format: 1, atom: 5 }, 'msgpack')
    await zookeeper.setData(`${path}/${shardName(BAD)}/${name}/${name}/0`, damaged)
    await zookeeper.close()
  })
})

test('in Postgres', async () => {
  const server = await createDatabase()
  try {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    await expectOnlyOneMissing(`${server.uri}?schema=${schema}`, async () => {
      const client = new pg.Client({ connectionString: server.uri })
      await client.connect()
      const body = Buffer.from(encode(5, 'msgpack'))
      const ofBad = `flow = (SELECT id FROM ${schema}.flows WHERE uuid = $2)`
      await client.query(`UPDATE ${schema}.atoms SET body = $1 WHERE ${ofBad}`, [body, BAD])
      await client.end()
    })
  } finally {
    await server.stop()
  }
})
