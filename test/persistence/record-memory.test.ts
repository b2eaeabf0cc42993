/** Records that take far more memory than they take in the storage: each costs its own logbook one error, and no memory. */
import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32, deflateRawSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { encode } from '../../src/core/codec.ts'
import { SealedLogbook, StorageFailure } from '../../src/core/errors.ts'
import { compressed, type LogbookCodec, openPersistence } from '../../src/persistence/index.ts'
import { RecordDecoder } from '../../src/persistence/record-memory.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { emptyObjects } from '../support/poison.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { filesBelow, temporaryDirectory } from './directory/directories.ts'
import { atom, requestOf, written } from './flows.ts'

const MIB = 1_024 * 1_024
const INFLATED = Uint8Array.of(1)

/** `{result: [{}, {}, …]}` in msgpack: 64 bytes of memory for each byte. */
function emptyResult(count: number): Uint8Array {
  return Buffer.concat([Buffer.from([0x81, 0xa6, ...Buffer.from('result')]), emptyObjects(count)])
}

/** Writes these bytes in the place of every result, as somebody does who can write to the storage. */
function forging(bytes: Uint8Array): LogbookCodec {
  return { name: 'deflate', encode: () => Uint8Array.from(bytes), decode: (sealed) => sealed }
}

function deflated(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([INFLATED, deflateRawSync(bytes)])
}

let server: PostgresServer
let folder: string

beforeAll(async () => {
  server = await startPostgres()
  folder = await temporaryDirectory()
})

afterAll(async () => {
  await server?.stop()
  await rm(folder, { recursive: true, force: true })
})

const PLACES: Readonly<Record<string, () => string>> = {
  memory: () => `memory:${randomUUID()}`,
  directory: () => `directory:${join(folder, randomUUID())}`,
  postgres: () => `${server.uri}?schema=s_${randomUUID().replaceAll('-', '')}`,
  ...(zookeeperHosts ? { zookeeper: () => `zookeeper://${zookeeperHosts}${namespace('memory')}/logbooks` } : {}),
}

describe.each(Object.entries(PLACES))('in %s', (_, placeOf) => {
  test('a sealed record of 16 KB that would take 1 GB costs its own logbook an error that names it', async () => {
    const uri = placeOf()
    const bomb = deflated(emptyResult(16 * MIB))
    expect(bomb.length).toBeLessThan(17_000)
    await using forger = await openPersistence(uri, { codec: forging(bomb) })
    await (await forger.acquire(requestOf('bad', 1))).write({ atoms: [atom('one', { result: 1 })] })
    await using persistence = await openPersistence(uri)
    await (await persistence.acquire(requestOf('good', 1))).write({ atoms: [atom('one', { result: 1 })] })
    for (const read of [() => persistence.getBook('bad'), () => persistence.acquire(requestOf('bad', 2))]) {
      const reading = read()
      await expect(reading).rejects.toThrow(SealedLogbook)
      await expect(reading).rejects.toThrow(
        /^logbook bad: cannot read the results of atom one: takes more than \d+ bytes/,
      )
    }
    const listed: string[] = []
    for await (const { uuid } of persistence.listBooks()) listed.push(uuid)
    expect(listed.toSorted()).toEqual(['bad', 'good'])
    expect((await persistence.getBook('good')).flows[0]?.atoms.map(written)).toEqual([atom('one', { result: 1 })])
  })
})

test('records that are each small enough are refused when they are too large together', () => {
  const plain = emptyResult(2.5 * MIB)
  const decoder = new RecordDecoder()
  const options = { storedBytes: deflated(plain).length }
  expect(decoder.decode(plain, options)).toBeTypeOf('object')
  expect(() => decoder.decode(plain, options)).toThrow('bytes of memory once it is decoded')
  expect(new RecordDecoder().decode(plain, options)).toBeTypeOf('object')
})

test('what takes about the memory that it takes in the storage is read, however large it is', () => {
  const bytes = encode({ result: new Uint8Array(60 * MIB) }, 'msgpack')
  const decoder = new RecordDecoder()
  for (let records = 0; records < 5; records += 1) expect(decoder.decode(bytes)).toBeTypeOf('object')
})

test('a plain record of a directory that would take 1 GB is called damaged, with its file', async () => {
  const root = join(folder, randomUUID())
  await using persistence = await openPersistence(`directory:${root}`)
  await (await persistence.acquire(requestOf('bad', 1))).write({ atoms: [atom('one')] })
  const log = join(root, (await filesBelow(root)).find((file) => file.endsWith('1.log')) ?? '')
  const payload = emptyResult(16 * MIB)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(payload.length, 0)
  head.writeUInt32BE(crc32(payload), 4)
  await writeFile(log, Buffer.concat([head, payload]))
  const reading = persistence.getBook('bad')
  await expect(reading).rejects.toThrow(StorageFailure)
  await expect(reading).rejects.toThrow(`${log} is damaged: takes more than`)
})

test('a result that could not be read again is refused when it is written', async () => {
  const result = new Array<unknown>(1.5 * MIB).fill(new Uint8Array())
  for (const codec of [undefined, compressed()]) {
    const persistence = await openPersistence(`directory:${join(folder, randomUUID())}`, codec ? { codec } : {})
    onTestFinished(() => persistence.close())
    const log = await persistence.acquire(requestOf('book', 1))
    const writing = log.write({ atoms: [atom('one', { result })] })
    await expect(writing).rejects.toThrow(StorageFailure)
    await expect(writing).rejects.toMatchObject({ retryable: false })
    await expect(writing).rejects.toThrow('store large data elsewhere')
    await log.write({ atoms: [atom('one', { result: 'small' })] })
  }
})
