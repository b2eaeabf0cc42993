/** The fence never goes back: not with servers that lose their data, nor with a backup, nor with a board that is removed. */
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JobBoard } from '../../../../../src/board/index.ts'
import { InvalidState } from '../../../../../src/core/errors.ts'
import { namespace, zookeeperHosts } from '../../../../support/namespace.ts'
import { freePort } from '../../../../support/ports.ts'
import { type PostgresServer, startPostgres } from '../../../../support/postgres.ts'
import { PostgresPrograms } from '../../../../support/postgres-programs.ts'
import { startZooKeeper } from '../../../../support/zookeeper.ts'
import { zookeeperPlace } from '../../../boards.ts'
import { type PostgresPlace, postgresPlaceOn } from '../../postgres/boards.ts'

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

/** Resolves once the clock, in nanoseconds since 1970, is past this time. */
async function clockPasses(time: bigint): Promise<void> {
  while (BigInt(Date.now()) * 1_000_000n <= time) await nextTurn()
}

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  test('a board that is restored from a backup, or whose servers lost all data, continues above what it handed out', async () => {
    const path = namespace('board')
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-backup-'))
    const [data, backup] = [join(folder, 'data'), join(folder, 'backup')]
    try {
      await using server = await startZooKeeper({ port: await freePort(), dataDir: data, java: [] })
      const fences: bigint[] = []
      const life = async () => {
        await using place = await zookeeperPlace(server.hosts, { path })
        fences.push(...(await fencesOf(() => place.open(), 3)))
      }
      await life()
      await cp(data, backup, { recursive: true })
      await life()
      await server.kill()
      await rm(data, { recursive: true })
      await cp(backup, data, { recursive: true })
      await server.restart()
      // Numbers may repeat where a backup is claimed from within a second after the base in it was raised.
      await clockPasses((fences[0] ?? 0n) + 1_500_000_000n)
      await life()
      await server.kill()
      await rm(data, { recursive: true })
      await server.restart()
      await life()
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
    await place.observer.delete(`${place.path}/.gate`)
    fences.push(await fenceOn(board))
    await place.observer.setData(`${place.path}/.gate`, Buffer.from('{"paused":false}'))
    fences.push(await fenceOn(board))
    expectGrowing(fences)
  })

  test('a gate whose base cannot be read, or is years ahead, is refused and left as it is; posting goes on', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const fence = await fenceOn(board)
    const gate = `${place.path}/.gate`
    const { data: sound } = await place.observer.getData(gate)
    for (const text of ['{"paused":false,"fenceBase":"99999999999999999999"}', '{"fenceBase":7}', '[]', '{']) {
      await place.observer.setData(gate, Buffer.from(text))
      await using late = await place.open()
      for (const one of [board, late]) {
        const claiming = one.claim(await one.post('flow', {}))
        await expect(claiming).rejects.toThrow(InvalidState)
        await expect(claiming).rejects.toThrow(`${gate} is damaged`)
      }
      if (!text.includes('99999')) await expect(board.pause()).rejects.toThrow(`${gate} is damaged`)
      expect(Buffer.from((await place.observer.getData(gate)).data ?? []).toString()).toBe(text)
    }
    const job = await board.post('flow', {})
    await expect(board.claim(job)).rejects.toThrow(InvalidState)
    await place.observer.setData(gate, sound ?? new Uint8Array())
    // At once: the board has not been notified of the repair yet.
    const claim = await board.claim(job)
    await claim.consume()
    expectGrowing([fence, claim.fence])
  })

  test('a damaged gate is reported once while claims wait, and hides no job: once it is repaired they are claimed', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    await fenceOn(board)
    const gate = `${place.path}/.gate`
    const { data: sound } = await place.observer.getData(gate)
    const errors: string[] = []
    const reported = new Promise<void>((resolve) => {
      board.on('error', ({ error }) => {
        errors.push(String(error))
        resolve()
      })
    })
    await place.observer.setData(gate, Buffer.from('{"paused":false,"fenceBase":"99999999999999999999"}'))
    await board.post('flow', {}, { name: 'innocent' })
    const claiming = board.claimNext({ timeout: '30s' })
    await reported
    await place.observer.setData(gate, sound ?? new Uint8Array())
    const [claim] = await claiming
    expect(claim.job.name).toBe('innocent')
    expect(errors).toEqual([expect.stringContaining(`${gate} is damaged`)])
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
        place.observer.setData(
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
  /** One schema for all: making one takes longer than most of what is done with it. */
  let place: PostgresPlace

  beforeAll(async () => {
    server = await startPostgres({ config: { fsync: 'off' } })
    place = await postgresPlaceOn(server.uri)
  })

  afterAll(async () => {
    await place?.[Symbol.asyncDispose]()
    await server?.stop()
  })

  test('a board that is restored from a dump continues above what it handed out after the dump, also in a session that lives on', async () => {
    const programs = await PostgresPrograms.find()
    await using board = await place.open()
    const fences = [await fenceOn(board)]
    const session = await place.sessionOf(board)
    const restored = `DROP SCHEMA ${place.schema} CASCADE;\n${await programs.dump(server.uri, place)}`
    for (let number = 0; number < 3; number++) fences.push(await fenceOn(board))
    await programs.runSql(server.uri, restored)
    fences.push(await fenceOn(board), await fenceOn(board))
    expect(await place.sessionOf(board)).toBe(session)
    // The next restore takes away what the session that lived on has raised.
    await board.close()
    await programs.runSql(server.uri, restored)
    fences.push(...(await fencesOf(() => place.open(), 2)))
    expectGrowing(fences)
  })

  test('a board that was removed from a schema, and boards beside it, begin above what was handed out', async () => {
    const fences = await fencesOf(() => place.open(), 2)
    await place.query('DROP SCHEMA @ CASCADE')
    fences.push(...(await fencesOf(() => place.open(), 2)))
    expectGrowing(fences)
  })
})
