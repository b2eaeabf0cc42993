/** A look at logbooks makes nothing: no folder, no table, no znode. */
import { randomUUID } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { IncompatibleVersion, NotFound } from '../../src/core/errors.ts'
import { openPersistence, openPersistenceOver } from '../../src/persistence/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { createDatabase, type PostgresDatabase } from '../support/postgres-database.ts'
import { connected } from '../zookeeper/clients.ts'
import { filesBelow, testDirectory } from './directory/directories.ts'
import { requestOf } from './flows.ts'

const look = (uri: string) => openPersistence(uri, { create: false })

describe('in Postgres', () => {
  let server: PostgresDatabase
  let pool: pg.Pool
  beforeAll(async () => {
    server = await createDatabase()
    pool = new pg.Pool({ connectionString: server.uri })
    pool.on('error', () => undefined)
  })
  afterAll(async () => {
    await pool?.end()
    await server?.stop()
  })

  const schemas = async () => {
    const { rows } = await pool.query('SELECT nspname FROM pg_namespace')
    return rows.map(({ nspname }) => nspname)
  }

  test('there are none until the first write, and then they can be read without the right to write', async () => {
    const schema = `s_${randomUUID().replaceAll('-', '')}`
    const uri = `${server.uri}?schema=${schema}`
    const refusal: unknown = await look(uri).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(NotFound)
    expect(String(refusal)).toContain(
      `schema ${schema} has no tables of logbooks; the first conductor that uses this location creates them`,
    )
    await expect(openPersistenceOver(pool, { schema, create: false })).rejects.toThrow(NotFound)
    expect(await schemas()).not.toContain(schema)
    await using persistence = await openPersistence(uri)
    await persistence.acquire(requestOf('book', 1))
    const user = `reader_${schema}`
    await pool.query(`CREATE ROLE ${user} LOGIN`)
    await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${user}`)
    await pool.query(`GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${user}`)
    await using reader = await look(uri.replace('postgres@', `${user}@`))
    expect(await reader.getBook('book')).toMatchObject({ uuid: 'book' })
  })

  test('tables of an older release are not brought up to date by a look', async () => {
    const schema = `s_${randomUUID().replaceAll('-', '')}`
    const uri = `${server.uri}?schema=${schema}`
    await (await openPersistence(uri)).close()
    await pool.query(`INSERT INTO ${schema}.migrations (part, version) VALUES ('logbooks', 99)`)
    await expect(look(uri)).rejects.toThrow(IncompatibleVersion)
  })
})

test('in a directory: a folder that is not there is not made, and one that can only be read is read', async () => {
  const directory = await testDirectory()
  const root = join(directory, 'logbooks')
  await expect(look(`directory:${root}`)).rejects.toThrow(`there are no logbooks in directory:${root}: no such folder`)
  expect(await filesBelow(directory)).toEqual([])
  const persistence = await openPersistence(`directory:${root}`)
  await persistence.createBook({ uuid: 'book', name: 'book' })
  await persistence.close()
  await chmod(root, 0o555)
  await using reader = await look(`directory:${root}`)
  expect(await reader.getBook('book')).toMatchObject({ uuid: 'book' })
  await chmod(root, 0o755)
})

test('in memory: what was never opened is not there', async () => {
  const uri = `memory:${randomUUID()}`
  await expect(look(uri)).rejects.toThrow(NotFound)
  await using _ = await openPersistence(uri)
  await (await look(uri)).close()
})

describe.skipIf(!zookeeperHosts)('in ZooKeeper', () => {
  test('a path that is not there is not made', async () => {
    const place = namespace('look')
    const uri = `zookeeper://${zookeeperHosts}${place}/logbooks`
    await expect(look(uri)).rejects.toThrow(NotFound)
    await using observer = await connected()
    expect(await observer.exists(place)).toBeUndefined()
    await using persistence = await openPersistence(uri)
    await persistence.createBook({ uuid: 'book', name: 'book' })
    await using reader = await look(uri)
    expect(await reader.getBook('book')).toMatchObject({ uuid: 'book' })
  })
})
