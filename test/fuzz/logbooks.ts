/**
 * Writes what logbooks keep. Each victim is a flow that a run has left half done, as the library records it; then some of its
 * bytes are replaced, and its job is put on the board, where a conductor takes it over.
 */
import { randomUUID } from 'node:crypto'
import { appendFile, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { decode, encodePlain } from '../../src/core/codec.ts'
import { runFlow } from '../../src/index.ts'
import { bookFolder, flowFolder } from '../../src/persistence/directory/layout.ts'
import { decodeFrames } from '../../src/persistence/directory/records.ts'
import { openPersistence, type Persistence } from '../../src/persistence/index.ts'
import type { AtomDetail, FlowDetail } from '../../src/persistence/models.ts'
import { LogbookLayout, termPath } from '../../src/persistence/zookeeper/layout.ts'
import { NodeExists, NoNode } from '../../src/zookeeper/index.ts'
import type { PostgresPlace } from '../board/backends/postgres/boards.ts'
import type { ZooKeeperPlace } from '../board/boards.ts'
import type { BoardPlace } from '../contract/board.ts'
import { temporaryDirectory } from '../persistence/directory/directories.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { postingRecord } from '../support/poison.ts'
import type { Random } from '../support/random.ts'
import { FLOW_OF_TARGETS } from './flow.ts'
import { ODD_TEXTS } from './real.ts'
import { FLOW, type RecordMaker } from './records.ts'

interface Logbooks extends AsyncDisposable {
  readonly logbooks: string
  plant(make: RecordMaker): Promise<unknown>
}

/** A flow that was left half done. */
interface Victim {
  readonly book: string
  readonly flow: string
}

/** Replaces bytes of a victim. */
type Damage = (victim: Victim, make: RecordMaker) => Promise<unknown>

async function logbooksAt(
  uri: string,
  { place, random, damage }: { readonly place: BoardPlace; readonly random: Random; readonly damage: Damage },
): Promise<Logbooks> {
  const persistence = await openPersistence(uri)
  const whole = await finishedFlow()
  return {
    logbooks: uri,
    plant: async (make) => {
      const victim = await leaveHalfDone(persistence, { whole, random })
      await damage(victim, make)
      await place.putRaw(postingOf(victim, random))
    },
    [Symbol.asyncDispose]: () => persistence.close(),
  }
}

async function finishedFlow(): Promise<FlowDetail> {
  await using persistence = await openPersistence('memory:')
  await runFlow(FLOW_OF_TARGETS, {}, { persistence })
  for await (const { uuid } of persistence.listBooks()) {
    const [flow] = (await persistence.getBook(uuid)).flows
    if (flow) return flow
  }
  throw new Error('the flow has left no logbook')
}

async function leaveHalfDone(
  persistence: Persistence,
  { whole, random }: { readonly whole: FlowDetail; readonly random: Random },
): Promise<Victim> {
  const { name, version } = whole
  const [book, flow] = [randomUUID(), randomUUID()]
  const request = {
    book: { uuid: book, name: 'book' },
    flow: { uuid: flow, name, version },
    run: 1,
    claim: randomUUID(),
  }
  await using log = await persistence.acquire(request)
  const atoms = whole.atoms.slice(0, random.between(1, whole.atoms.length)).map((atom) => asLeft(atom, random))
  await log.write({ state: random.pick(['RUNNING', 'SUSPENDED']), atoms })
  return { book, flow }
}

function asLeft(atom: AtomDetail, random: Random): AtomDetail {
  if (random.next() < 0.6) return atom
  const { result: _, ...rest } = atom
  return { ...rest, state: random.pick(['RUNNING', 'PENDING', 'FAILURE']), failure: { name: 'Error', message: 'm' } }
}

function postingOf({ book, flow }: Victim, random: Random): Uint8Array {
  const record = postingRecord({
    ...{ uuid: flow, name: 'victim', priority: 'NORMAL', maxAttempts: random.between(1, 2), runs: 1 },
    attempts: [{ who: 'w', at: new Date(0).toISOString(), ended: 'returned' }],
    details: { flow: FLOW, store: {} },
    book: { uuid: book, name: 'book' },
  })
  return encodePlain(record, 'msgpack')
}

// --- In a directory ---------------------------------------------------------------------------------------------------

export async function directoryLogbooks(place: BoardPlace, random: Random): Promise<Logbooks> {
  const root = await temporaryDirectory()
  const damage: Damage = async ({ book, flow }, make) => {
    const folder = bookFolder(root, book)
    const flows = flowFolder(folder, flow)
    const file = random.pick([
      join(folder, 'book.record'),
      join(flows, '1.log'),
      join(flows, '1.log'),
      join(flows, '1.mark'),
    ])
    await random.pick<() => Promise<unknown>>([
      async () => writeFile(file, make.damaged(await readFile(file))),
      async () => writeFile(file, reframed(await readFile(file), make, random)),
      async () => writeFile(file, reframed(await readFile(file), make, random)),
      () => appendFile(file, framed(make.record({ at: new Date(), state: 'SUCCESS', atoms: [] }))),
      () => plantFile(random.pick([folder, flows]), make, random),
    ])()
  }
  const logbooks = await logbooksAt(`directory:${root}`, { place, random, damage })
  return {
    ...logbooks,
    [Symbol.asyncDispose]: async () => {
      await logbooks[Symbol.asyncDispose]()
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** The records of a file, one of them another, with checksums that are right. */
function reframed(file: Buffer, make: RecordMaker, random: Random): Uint8Array {
  const records = decodeFrames(file)
  const chosen = random.between(0, Math.max(0, records.length - 1))
  return Buffer.concat(
    records.map((record, index) =>
      framed(index === chosen ? make.record(Object(record)) : encodePlain(record, 'msgpack')),
    ),
  )
}

function framed(payload: Uint8Array): Uint8Array {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(payload.length, 0)
  head.writeUInt32BE(crc32(payload), 4)
  return Buffer.concat([head, payload])
}

async function plantFile(folder: string, make: RecordMaker, random: Random): Promise<void> {
  const names = [
    ...['2.log', '2.mark', '01.log', '1.1.log', '1.1.mark', '0.log', '9007199254740991.log', '9007199254740991.mark'],
    ...['9007199254740993.log', '1.0.log', 'book.1.record', 'book.changed', 'book.9007199254740991.record', 'x', 'x.y'],
  ]
  const path = join(folder, random.pick(names))
  await random
    .pick<() => Promise<unknown>>([
      () => writeFile(path, make.record({ format: 1 }), { flag: 'wx' }),
      () => writeFile(path, framed(make.record({ format: 1, claim: 'c', book: {}, flow: {} })), { flag: 'wx' }),
      () => mkdir(path),
      () => symlink('nothing', path),
    ])()
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
}

// --- In Postgres ------------------------------------------------------------------------------------------------------

export async function postgresLogbooks(
  place: PostgresPlace,
  { server, random }: { readonly server: string; readonly random: Random },
): Promise<Logbooks> {
  const damage: Damage = async ({ book, flow }, make) => {
    const text = () => random.pick(ODD_TEXTS)
    const integer = () =>
      random.pick(['0', '-1', '2', '9007199254740993', '9223372036854775807', '-9223372036854775808'])
    const instant = () => random.pick(['infinity', '-infinity', '4714-11-24 BC', '294276-12-31'])
    const json = () => asJson(make.value() ?? null)
    const states = () => random.pick([json(), asJson([make.value()]), '[{"state":"RUNNING","at":"x","run":1}]'])
    const bytes = (record: Record<string, unknown>) => () => Buffer.from(make.record(record))
    const common = {
      name: text,
      state: () => random.pick(['SUCCESS', 'RUNNING', 'x', '']),
      states,
      created_at: instant,
    }
    const tables: Readonly<Record<string, Readonly<Record<string, () => unknown>>>> = {
      books: { uuid: text, name: text, meta: bytes({ board: 'b' }), revision: integer, created_at: instant },
      flows: {
        ...{ ...common, uuid: text, version: text, meta: bytes({}), run: integer, claim: text },
        ...{ term: integer, writes: integer, updated_at: instant },
      },
      atoms: {
        ...{ ...common, position: () => random.pick(['-1', '0', '2147483647']), kind: text, version: text },
        ...{ intention: text, body: bytes({ result: 'done', meta: {}, history: [] }), updated_at: instant },
      },
    }
    const table = random.pick(Object.keys(tables))
    const columns = tables[table] ?? {}
    const column = random.pick(Object.keys(columns))
    const flows = `SELECT f.id FROM @.flows f JOIN @.books b ON b.id = f.book WHERE b.uuid = $2 AND f.uuid = '${flow}'`
    const where = { books: 'uuid = $2', flows: `id IN (${flows})`, atoms: `flow IN (${flows})` }[table]
    const update = `UPDATE @.${table} SET ${column} = $1 WHERE ${where}`
    await place.query(update, [columns[column]?.(), book]).catch((error: unknown) => {
      // What Postgres does not take is not stored.
      if (!/^(22|23)/.test(String(Object(error).sqlState ?? Object(error).code))) throw error
    })
  }
  return logbooksAt(`${server}?schema=${place.schema}`, { place, random, damage })
}

function asJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part))
}

// --- In ZooKeeper -----------------------------------------------------------------------------------------------------

export async function zookeeperLogbooks(place: ZooKeeperPlace, random: Random): Promise<Logbooks> {
  const path = namespace('logbooks')
  const layout = new LogbookLayout(path)
  const { observer } = place
  const damage: Damage = async (victim, make) => {
    const book = layout.book(victim.book)
    const flow = layout.flow(victim.book, victim.flow)
    const node = random.pick([book, flow, flow, `${flow}/0`])
    const { data } = await observer.getData(node)
    const bytes = data ?? new Uint8Array()
    const record = decode(bytes, 'msgpack') as { readonly term?: string }
    const child = `${random.pick([book, flow])}/${encodeURIComponent(random.pick(ODD_TEXTS)) || 'empty'}`
    await random.pick<() => Promise<unknown>>([
      () => observer.setData(node, make.damaged(bytes)),
      () => observer.setData(node, make.record(record)),
      () => observer.setData(node, make.record(record)),
      () => observer.create(child, make.record(record)).catch(unless(NodeExists)),
      () => observer.delete(termPath(flow, String(record.term))).catch(unless(NoNode)),
      () => observer.delete(`${flow}/0`).catch(unless(NoNode)),
    ])()
  }
  return logbooksAt(`zookeeper://${zookeeperHosts}${path}`, { place, random, damage })
}

function unless(kind: new (...args: never[]) => Error): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof kind)) throw error
  }
}
