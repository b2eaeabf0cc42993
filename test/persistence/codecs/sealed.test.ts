/** Logbooks whose results go through a codec: on every backend, beside records that did not, and with the wrong key. */
import { randomBytes, randomUUID } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { InvalidArgument, NonRetryable, SealedLogbook } from '../../../src/core/errors.ts'
import { parseUri } from '../../../src/core/uri.ts'
import {
  input,
  linear,
  openBoard,
  openPersistenceOver,
  type SqlDriver,
  startConductor,
  task,
  track,
} from '../../../src/index.ts'
import {
  compressed,
  encrypted,
  type LogbookCodec,
  openPersistence,
  type Persistence,
} from '../../../src/persistence/index.ts'
import { PostgresPool, parsePostgresLocation } from '../../../src/postgres/index.ts'
import { persistenceContract } from '../../contract/persistence.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { createDatabase, type PostgresDatabase } from '../../support/postgres-database.ts'
import { currentTier, rowsOf } from '../../variant.ts'
import { filesBelow, temporaryDirectory } from '../directory/directories.ts'
import { atom, requestOf, written } from '../flows.ts'

const key = randomBytes(32)

// A codec is below all of it: what a codec changes has tests of its own.
if (currentTier() !== 'usual')
  persistenceContract({
    name: 'directory: with compression and encryption',
    storage: async () => {
      const folder = await temporaryDirectory()
      const codec = [compressed(), encrypted({ key })]
      return {
        open: () => openPersistence(`directory:${folder}`, { codec }),
        [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
      }
    },
  })

let server: PostgresDatabase
let folder: string

beforeAll(async () => {
  server = await createDatabase()
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
  ...(zookeeperHosts ? { zookeeper: () => `zookeeper://${zookeeperHosts}${namespace('sealed')}/logbooks` } : {}),
}

const failure = { name: 'Error', message: 'hunter2 is no password' }
const reports = { progressMessage: 'hunter2', checkpoint: { value: { password: 'hunter2' }, at: new Date(7) } }
const secrets = {
  ...{ result: { password: 'hunter2' }, revertResult: 'hunter2', failure, revertFailure: failure },
  ...reports,
}

const ROWS = Object.entries(PLACES)
const isUsual = ([where]: (typeof ROWS)[number]) => where === 'directory' || where === 'postgres'

describe.each(rowsOf({ usual: ROWS.filter(isUsual), variants: ROWS.filter((row) => !isUsual(row)) }))(
  'in %s',
  (_, placeOf) => {
    test('what was written before and after a codec came, and after its key changed, is read by who has all of them', async () => {
      const uri = placeOf()
      const [first, second] = [randomBytes(32).toString('base64'), randomBytes(32)]
      const codecs = [
        undefined,
        compressed(),
        encrypted({ key: first, require: false }),
        [compressed(), encrypted({ key: second, oldKeys: [first], require: false })],
      ]
      for (const [index, codec] of codecs.entries()) {
        await using persistence = await openPersistence(uri, codec ? { codec } : {})
        const log = await persistence.acquire(requestOf('book', index + 1))
        expect(log.flow.atoms.map(written)).toEqual(codecs.slice(0, index).map((_, at) => atom(`a${at}`, secrets)))
        await log.write({ atoms: [atom(`a${index}`, secrets)] })
        expect((await persistence.getBook('book')).flows[0]?.atoms.at(-1)?.states).toHaveLength(1)
      }
    })

    test('a key that is wrong, or missing, is one clear error, and such a record is never taken for one without results', async () => {
      const uri = placeOf()
      await using persistence = await openPersistence(uri, { codec: encrypted({ key }) })
      const log = await persistence.acquire(requestOf('book', 1))
      await log.write({ state: 'RUNNING', atoms: [atom('one', secrets), atom('two', { state: 'PENDING' })] })
      const refusals: readonly [LogbookCodec | undefined, string][] = [
        [undefined, 'they were written with the codec aes-256-gcm/2, which was not given'],
        [compressed(), 'they were written with the codec aes-256-gcm/2, which was not given'],
        [encrypted({ key: randomBytes(32) }), 'it was encrypted with key'],
      ]
      for (const [codec, says] of refusals) {
        await using other = await openPersistence(uri, codec ? { codec } : {})
        for (const read of [() => other.getBook('book'), () => other.acquire(requestOf('book', 1))]) {
          const error: unknown = await read().then(
            () => undefined,
            (thrown: unknown) => thrown,
          )
          expect(error).toBeInstanceOf(SealedLogbook)
          expect(error).toMatchObject({ retryable: true })
          expect(String(error)).toContain(`cannot read the results of atom one: ${says}`)
          expect(String(error)).not.toContain('hunter2')
        }
        const listed: string[] = []
        for await (const { uuid } of other.listBooks({ state: 'RUNNING' })) listed.push(uuid)
        expect(listed).toEqual(['book'])
      }
    })
  },
)

test('nothing of what tasks return or throw lies in the files, and all else does', async () => {
  const root = join(folder, 'files')
  await using persistence = await openPersistence(`directory:${root}`, { codec: encrypted({ key }) })
  const log = await persistence.acquire(requestOf('book', 1))
  await log.write({
    state: 'RUNNING',
    atoms: [atom('visible', { ...secrets, history: [{ value: 'hunter2', failures: [{ atom: 'one', failure }] }] })],
  })
  const bytes = await Promise.all((await filesBelow(root)).map((file) => readFile(join(root, file), 'latin1')))
  expect(bytes.join()).toContain('visible')
  expect(bytes.join()).not.toContain('hunter2')
})

test("nothing of it goes to a database, and a driver of one's own takes a codec, too", async () => {
  const pool = new PostgresPool(parsePostgresLocation(parseUri(server.uri, 'persistence')))
  const sent: unknown[] = []
  const driver: SqlDriver = {
    query: (text, values) => {
      sent.push(text, values)
      return pool.query(text, values)
    },
  }
  await using persistence = await openPersistenceOver(driver, { schema: 'sealed', codec: encrypted({ key }) })
  const log = await persistence.acquire(requestOf('book', 1))
  await log.write({ atoms: [atom('one', secrets)] })
  expect((await persistence.getBook('book')).flows[0]?.atoms.map(written)).toEqual([atom('one', secrets)])
  const all = sent.flat(3).map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value))
  expect(all.join()).toContain('one')
  expect(all.join()).not.toContain('hunter2')
  await persistence.close()
  await pool.close()
})

test('a large result takes less room compressed, and a record whose bytes were changed is not believed', async () => {
  const codec = encrypted({ key })
  const place = { book: 'book', flow: 'flow', atom: 'one' }
  const large = new Uint8Array(100_000)
  expect(compressed().encode(large, place).length).toBeLessThan(1_000)
  expect([...compressed().decode(compressed().encode(large, place), place)]).toEqual([...large])
  const short = Uint8Array.of(7)
  expect(compressed().encode(short, place)).toHaveLength(2)
  expect([...compressed().decode(compressed().encode(short, place), place)]).toEqual([7])
  const sealed = codec.encode(short, place)
  expect(codec.encode(short, place)).not.toEqual(sealed)
  sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1
  expect(() => codec.decode(sealed, place)).toThrow('it was changed, or written for another place')
})

test('a codec that throws fails the write, which costs the job nothing', async () => {
  const codec: LogbookCodec = {
    name: 'broken',
    encode: () => {
      throw new TypeError('no key today')
    },
    decode: (bytes) => bytes,
  }
  await using persistence = await openPersistence('memory:', { codec })
  const log = await persistence.acquire(requestOf('book', 1))
  await expect(log.write({ atoms: [atom('one', { result: 1 })] })).rejects.toMatchObject({
    code: SealedLogbook.code,
    retryable: true,
    message: expect.stringContaining('no key today'),
  })
})

test('what is no codec, no key or no option is refused, and a key is not repeated', async () => {
  const wrong: readonly [object, string][] = [
    [{ codec: 'gzip' }, 'codec must have a name'],
    [{ codec: [compressed(), { name: 'x' }] }, 'codec must have a name'],
    [{ codecs: [] }, 'has no option "codecs"'],
    [{ auth: [{ scheme: 'digest', auth: 'a:b' }] }, 'apply to logbooks on ZooKeeper only'],
  ]
  for (const [options, says] of wrong) {
    const refusal: unknown = await openPersistence('memory:', options).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(InvalidArgument)
    expect(String(refusal)).toContain(says)
  }
  const open: Persistence = await openPersistence('memory:')
  await expect(openPersistence(open, { codec: compressed() })).rejects.toThrow(
    'is open already; set the options where it is opened',
  )
  for (const short of ['hunter2', randomBytes(31), undefined]) {
    expect(() => encrypted(JSON.parse(JSON.stringify({ key: short })))).toThrow(
      /a key must be 32 bytes, or their base64/,
    )
  }
  expect(() => encrypted({ key: 'hunter2' })).not.toThrow('hunter2')
})

test('a conductor with another key gives the job back unharmed, and one with the key ends it', async () => {
  const uri = `memory:${randomUUID()}`
  const executed: string[] = []
  const one = task('one', {
    provides: 'secret',
    execute: async () => {
      executed.push('one')
      return 'hunter2'
    },
  })
  let broken = true
  const two = task('two', {
    requires: ['secret'],
    execute: async ({ secret }: { secret: string }) => {
      if (secret !== 'hunter2') throw new NonRetryable('it was lost')
      executed.push('two')
      return broken
    },
  })
  const flow = linear('flow', input<object>(), one, two)
  await using board = await openBoard('memory:')
  const codec = encrypted({ key })
  const job = await board.post(flow, {})
  {
    await using persistence = await openPersistence(uri, { codec })
    const log = await persistence.acquire(requestOf(job.uuid, 1))
    // As an owner leaves it that died between the two.
    await log.write({ state: 'RUNNING', atoms: [atom('one', { result: 'hunter2' })] })
  }
  broken = false
  {
    await using other = await startConductor({
      board,
      persistence: uri,
      codec: encrypted({ key: randomBytes(32) }),
      flows: [flow],
    })
    const settled = new Promise<string>((resolve) => other.on('settled', (event) => resolve(event.settled)))
    expect(await settled).toBe('abandoned')
  }
  await using persistence = await openPersistence(uri, { codec })
  await using _conductor = await startConductor({ board, persistence, flows: [flow] })
  expect(await job.wait()).toBe('COMPLETE')
  expect(executed).toEqual(['two'])
  expect(await track(job.uuid, { board, persistence })).toMatchObject({ status: 'done', results: { one: 'hunter2' } })
})
