/** The fence never goes back: not with servers that lose their data, nor with a backup, nor with a board that is removed. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JobBoard } from '../../src/board/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { nativeLeftOut } from '../support/native-package.ts'
import { freePort } from '../support/ports.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { PostgresPrograms } from '../support/postgres-programs.ts'
import { startZooKeeper } from '../support/zookeeper.ts'
import { zookeeperPlace } from './boards.ts'
import { nativeBoardAt } from './native-boards.ts'
import { postgresPlaceOn } from './postgres-boards.ts'

/** Posts a job, claims it and finishes it. */
async function fenceOn(board: JobBoard): Promise<bigint> {
  const claim = await board.claim(await board.post('flow', {}))
  await claim.consume()
  return claim.fence
}

async function fencesOf(open: () => Promise<JobBoard>, count: number): Promise<bigint[]> {
  await using board = await open()
  const fences: bigint[] = []
  for (let number = 0; number < count; number++) fences.push(await fenceOn(board))
  return fences
}

function expectGrowing(fences: readonly bigint[]): void {
  expect(fences).toEqual([...new Set(fences)].sort((a, b) => (a < b ? -1 : 1)))
}

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  test('a board that is restored from a backup, or whose servers lost all data, continues above what it handed out', async () => {
    const path = namespace('board')
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-backup-'))
    const [data, backup] = [join(folder, 'data'), join(folder, 'backup')]
    try {
      await using server = await startZooKeeper({ port: await freePort(), dataDir: data, java: [] })
      const fences: bigint[] = []
      const life = async (count: number) => {
        await using place = await zookeeperPlace(server.hosts, { path })
        if (!nativeLeftOut) fences.push(...(await fencesOf(() => nativeBoardAt(place, server), 1)))
        fences.push(...(await fencesOf(() => place.open(), count)))
        if (!nativeLeftOut) fences.push(...(await fencesOf(() => nativeBoardAt(place, server), 1)))
      }
      await life(1)
      await cp(data, backup, { recursive: true })
      await life(20)
      await server.kill()
      await rm(data, { recursive: true })
      await cp(backup, data, { recursive: true })
      await server.restart()
      await life(1)
      await server.kill()
      await rm(data, { recursive: true })
      await server.restart()
      await life(1)
      expectGrowing(fences)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('a board object that lives on while its board is removed and made again hands out larger fences', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const fences = [await fenceOn(board)]
    await place.beginAnew()
    await using other = await place.open()
    fences.push(await fenceOn(other), await fenceOn(other), await fenceOn(board), await fenceOn(other))
    expectGrowing(fences)
  })

  test('a gate that is removed by hand, or says nothing of fences, takes nothing back', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const fences = [await fenceOn(board)]
    await place.witness.delete(`${place.path}/.gate`)
    fences.push(await fenceOn(board))
    await place.witness.setData(`${place.path}/.gate`, Buffer.from('{"paused":false}'))
    fences.push(await fenceOn(board))
    expectGrowing(fences)
  })

  test('a pause, its end, and sessions that come and go change nothing of what fences begin at', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const fences = [await fenceOn(board)]
    const base = await place.fenceBase()
    expect(base).toBeGreaterThan(0n)
    await board.pause()
    await board.resume()
    await using other = await place.open()
    await other.pause()
    await other.resume()
    expect(await place.fenceBase()).toBe(base)
    fences.push(await fenceOn(board))
    expectGrowing(fences)
  })

  test('a job that is named is claimed also while another session raises the fence', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const fences = [await fenceOn(board)]
    for (let round = 0; round < 5; round++) {
      const raised = BigInt(Date.now() + 60_000 * (round + 1)) * 1_000_000n
      const posted = await board.post('flow', {})
      const [claim] = await Promise.all([
        board.claim(posted),
        place.witness.setData(
          `${place.path}/.gate`,
          Buffer.from(JSON.stringify({ paused: false, fenceBase: String(raised) })),
        ),
      ])
      fences.push(claim.fence, await fenceOn(board))
      expect(fences.at(-1)).toBeGreaterThan(raised)
    }
    expectGrowing(fences)
  })
})

describe('on Postgres', () => {
  let server: PostgresServer
  let programs: PostgresPrograms

  beforeAll(async () => {
    server = await startPostgres({ config: { fsync: 'off' } })
    programs = await PostgresPrograms.find()
  })

  afterAll(() => server.stop())

  test('a board that is restored from a dump continues above what it handed out after the dump', async () => {
    await using place = await postgresPlaceOn(server.uri)
    const fences = await fencesOf(() => place.open(), 1)
    const dump = await programs.dump(server.uri, place)
    fences.push(...(await fencesOf(() => place.open(), 20)))
    await programs.runSql(server.uri, `DROP SCHEMA ${place.schema} CASCADE;\n${dump}`)
    fences.push(...(await fencesOf(() => place.open(), 2)))
    expectGrowing(fences)
  })

  test('also where a session lives on through the restore', async () => {
    await using place = await postgresPlaceOn(server.uri)
    await using board = await place.open()
    const fences = [await fenceOn(board)]
    const session = await place.sessionOf(board)
    const dump = await programs.dump(server.uri, place)
    for (let number = 0; number < 5; number++) fences.push(await fenceOn(board))
    await programs.runSql(server.uri, `DROP SCHEMA ${place.schema} CASCADE;\n${dump}`)
    fences.push(await fenceOn(board), await fenceOn(board))
    expect(await place.sessionOf(board)).toBe(session)
    expectGrowing(fences)
  })

  test('a board that was removed from a schema, and boards beside it, begin above what was handed out', async () => {
    await using place = await postgresPlaceOn(server.uri)
    const fences = await fencesOf(() => place.open(), 2)
    await place.query('DROP SCHEMA @ CASCADE')
    fences.push(...(await fencesOf(() => place.open(), 2)))
    expectGrowing(fences)
  })
})
