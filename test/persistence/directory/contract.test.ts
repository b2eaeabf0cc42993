import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import {
  appendFile,
  chmod,
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { describe, expect } from 'vitest'
import { encode } from '../../../src/core/codec.ts'
import { Fenced, IncompatibleVersion, StorageFailure } from '../../../src/core/errors.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { persistenceContract } from '../../contract/persistence.ts'
import { count } from '../../support/counts.ts'
import { usual as test, variant } from '../../variant.ts'
import { atom, atomNames, requestOf } from '../flows.ts'
import { filesBelow, temporaryDirectory, testDirectory } from './directories.ts'

persistenceContract({
  name: 'directory:DIR',
  storage: async () => {
    const directory = await temporaryDirectory()
    return {
      open: () => openPersistence(`directory:${directory}`),
      [Symbol.asyncDispose]: () => rm(directory, { recursive: true }),
    }
  },
})

/** The only file under DIR with this name. */
async function fileNamed(directory: string, name: string): Promise<string> {
  const found = (await filesBelow(directory)).filter((file) => file.endsWith(`/${name}`))
  expect(found).toHaveLength(1)
  return join(directory, found[0] ?? '')
}

test('DIR is made, is relative to the working directory, and keeps what was written', async () => {
  const directory = join(await testDirectory(), 'a', 'b')
  const uri = `directory:${relative(process.cwd(), directory)}`
  for (const made of [true, false]) {
    await using persistence = await openPersistence(uri)
    expect(persistence.uri).toBe(uri)
    expect(await persistence.createBook({ uuid: 'book', name: 'book' })).toBe(made)
  }
  expect((await stat(directory)).isDirectory()).toBe(true)
})

test('a DIR that cannot be used is refused in one line', async () => {
  const file = join(await testDirectory(), 'file')
  await writeFile(file, '')
  const dangling = `${file}.link`
  await symlink(`${file}.gone`, dangling)
  for (const [uri, reason] of [
    [`directory:${dangling}`, 'a link to nothing'],
    [`directory:${dangling}/below`, 'a link to nothing'],
    [`directory:${file}`, 'it is a file'],
    [`directory:${file}/below`, 'a part of the path is a file'],
  ] as const) {
    const refusal: unknown = await openPersistence(uri).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(StorageFailure)
    expect(String(refusal)).toContain(reason)
    expect(String(refusal)).not.toContain('\n')
  }
})

test('no name leaves DIR, and nothing lies outside the folder of its book', async () => {
  const outer = await testDirectory()
  const directory = join(outer, 'logbooks')
  await using persistence = await openPersistence(`directory:${directory}`)
  const names = ['../x', '../../x', '..', '.', '/x', 'a/../../..', 'book.record', '1.log', 'x.gone', 'é\0', '\\..\\x']
  for (const name of names) {
    const log = await persistence.acquire(requestOf(name, 1))
    await log.write({ state: 'RUNNING' })
  }
  expect(await readdir(outer)).toEqual(['logbooks'])
  const files = await filesBelow(directory)
  expect(files).toHaveLength(3 * names.length)
  for (const file of files)
    expect(file).toMatch(/^[0-9a-f]{2}\/[0-9a-z%_-]+\/(book\.record|[0-9a-z%_-]+\/1\.(mark|log))$/)
})

variant('books that share a shard stay apart', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  // The first digits of their hashes are the same.
  const uuids = Array.from({ length: 300 }, (_, number) => `book-${number}`)
  await Promise.all(uuids.map((uuid) => persistence.createBook({ uuid, name: `name of ${uuid}` })))
  const shards = await readdir(directory)
  expect(shards.length).toBeLessThan(uuids.length)
  for (const uuid of uuids) expect((await persistence.getBook(uuid)).name).toBe(`name of ${uuid}`)
  await persistence.destroyBook('book-7')
  const left: string[] = []
  for await (const { uuid } of persistence.listBooks()) left.push(uuid)
  expect(left.toSorted()).toEqual(uuids.filter((uuid) => uuid !== 'book-7').toSorted())
})

variant('a log that was cut anywhere in its last record is read up to the one before', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  const log = await persistence.acquire(requestOf('uuid', 1))
  await log.write({ atoms: [atom('first')] })
  const path = await fileNamed(directory, '1.log')
  const whole = (await stat(path)).size
  await log.write({ atoms: [atom('last', { result: { big: 2n ** 60n, text: 'ü' } })] })
  await log.close()
  const bytes = await readFile(path)
  expect(atomNames(await persistence.getBook('uuid'))).toEqual(['first', 'last'])
  for (let length = whole; length < bytes.length; length++) {
    await writeFile(path, bytes.subarray(0, length))
    expect(atomNames(await persistence.getBook('uuid'))).toEqual(['first'])
    await appendFile(path, Buffer.alloc(64))
    expect(atomNames(await persistence.getBook('uuid'))).toEqual(['first'])
  }
  for (let at = whole; at < bytes.length; at++) {
    const damaged = Buffer.from(bytes)
    damaged[at] = (damaged[at] ?? 0) ^ 0x10
    await writeFile(path, damaged)
    expect(atomNames(await persistence.getBook('uuid'))).toEqual(['first'])
  }
  const nextOwner = await persistence.acquire(requestOf('uuid', 2))
  await nextOwner.write({ atoms: [atom('after')] })
  expect(atomNames(await persistence.getBook('uuid'))).toEqual(['first', 'after'])
})

test('a mark without a log belongs to one who died: its claim may ask again, a newer run goes on without it', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  const first = await persistence.acquire(requestOf('uuid', 1))
  await first.write({ atoms: [atom('kept')] })
  const folder = dirname(await fileNamed(directory, '1.log'))
  await persistence.acquire(requestOf('other', 5))
  await copyFile(await fileNamed(directory, '5.mark'), join(folder, '5.mark'))

  expect(atomNames(await persistence.getBook('uuid'))).toEqual(['kept'])
  await expect(first.write({ atoms: [atom('late')] })).rejects.toThrow('run 5 has acquired it')
  await expect(persistence.acquire(requestOf('uuid', 5, 'another claim'))).rejects.toThrow(Fenced)
  const again = await persistence.acquire(requestOf('uuid', 5))
  await again.write({ atoms: [atom('again')] })
  const newer = await persistence.acquire(requestOf('uuid', 6))
  expect(newer.flow.atoms.map(({ name }) => name)).toContain('kept')
  expect(newer.flow.atoms.at(-1)?.name).toBe('again')
})

test('a flow with a mark and nothing else is not there yet, and its next run starts it', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  await persistence.acquire(requestOf('uuid', 3))
  await rm(await fileNamed(directory, '3.log'))
  expect((await persistence.getBook('uuid')).flows).toEqual([])
  const next = await persistence.acquire(requestOf('uuid', 4))
  expect(next.flow).toMatchObject({ state: 'PENDING', run: 4, atoms: [] })
})

test('a mark that a power failure left empty has no owner', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  await persistence.acquire(requestOf('uuid', 3))
  await truncate(await fileNamed(directory, '3.mark'))
  await expect(persistence.acquire(requestOf('uuid', 3))).rejects.toThrow(Fenced)
  expect((await persistence.acquire(requestOf('uuid', 4))).flow.run).toBe(4)
})

test('the next owner removes what older terms left, and nothing of newer ones', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  for (const run of [1, 2, 2]) await persistence.acquire(requestOf('uuid', run))
  const folder = dirname(await fileNamed(directory, '2.1.log'))
  expect((await readdir(folder)).toSorted()).toEqual(['2.1.log', '2.1.mark'])
  for (const leftover of ['1.log', '2.1.log.x.tmp', '4.mark.x.tmp', '9.mark.x.tmp']) {
    await writeFile(join(folder, leftover), '')
  }
  await persistence.acquire(requestOf('uuid', 7))
  expect((await readdir(folder)).toSorted()).toEqual(['7.log', '7.mark', '9.mark.x.tmp'])
})

test('the log of a flow that is over is cut down to what it comes to; of one that is not it stays', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  const sizes: number[] = []
  for (const state of ['SUSPENDED', 'REVERTED'] as const) {
    const log = await persistence.acquire(requestOf(state, 1))
    const result = 'x'.repeat(2_000)
    for (let time = 0; time < 100; time++) await log.write({ atoms: [atom('one', { result, meta: { time } })] })
    await log.write({ state, atoms: [atom('two')] })
    const before = await persistence.getBook(state)
    await log.close()
    const { flows, ...book } = await persistence.getBook(state)
    expect({ ...book, flows: flows.map((flow) => ({ ...flow, updatedAt: before.flows[0]?.updatedAt })) }).toEqual(
      before,
    )
    const name = state === 'SUSPENDED' ? '1.log' : '1.1.log'
    sizes.push((await stat(await fileNamed(directory, name))).size)
  }
  expect(sizes[0]).toBeGreaterThan(200_000)
  expect(sizes[1]).toBeLessThan(5_000)
  const nextOwner = await persistence.acquire(requestOf('REVERTED', 2))
  expect(nextOwner.flow.atoms.map(({ name }) => name)).toEqual(['one', 'two'])
})

variant('thousands of books are listed page by page, and found one by one', async () => {
  const BOOKS = count({ test: 2_000, long: 30_000 })
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  const uuids = new Set<string>()
  const making = async () => {
    while (uuids.size < BOOKS) {
      const uuid = randomUUID()
      uuids.add(uuid)
      await persistence.createBook({ uuid, name: `book ${uuids.size % 10}` })
    }
  }
  await Promise.all(Array.from({ length: 16 }, making))
  const found: string[] = []
  for (let after: string | undefined; ; after = found.at(-1)) {
    const before = found.length
    const page = { limit: 500, ...(after === undefined ? {} : { after }) }
    for await (const { uuid } of persistence.listBooks(page)) found.push(uuid)
    if (found.length === before) break
  }
  expect(found).toHaveLength(uuids.size)
  expect(new Set(found)).toEqual(uuids)
})

test('a book whose removal was broken off is gone, and is cleared away with the next of its shard', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  await persistence.createBook({ uuid: 'uuid', name: 'book' })
  const record = await fileNamed(directory, 'book.record')
  const gone = `${dirname(record)}.before.gone`
  await mkdir(gone)
  await link(record, join(gone, 'book.record'))
  const listed: string[] = []
  for await (const { uuid } of persistence.listBooks()) listed.push(uuid)
  expect(listed).toEqual(['uuid'])
  await persistence.destroyBook('uuid')
  expect(await filesBelow(directory)).toEqual([])
})

test('what a newer release wrote is refused, and so is what is no logbook', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  await persistence.acquire(requestOf('uuid', 1))
  const path = await fileNamed(directory, '1.log')
  await writeFile(path, framed({ format: 99, flow: {} }))
  await expect(persistence.getBook('uuid')).rejects.toThrow(IncompatibleVersion)
  await expect(persistence.acquire(requestOf('uuid', 2))).rejects.toThrow(IncompatibleVersion)
  for (const bytes of [Buffer.from('hello, this is no logbook'), framed('text'), framed({ format: 1 }), framed(null)]) {
    await writeFile(path, bytes)
    await expect(persistence.getBook('uuid')).rejects.toThrow(StorageFailure)
  }
})

test('one book that is damaged hides no other in a listing', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  for (const uuid of ['a', 'b', 'c', 'd']) {
    const log = await persistence.acquire(requestOf(uuid, 1))
    await log.write({ state: 'SUCCESS' })
    await log.close()
  }
  const files = await filesBelow(directory)
  const file = (book: string, name: string) =>
    join(directory, files.find((each) => each.includes(`/${book}/`) && each.endsWith(name)) ?? '')
  await writeFile(file('b', '1.log'), '')
  await writeFile(file('c', '1.log'), framed({ format: 99, flow: {} }))
  await writeFile(file('d', 'book.record'), 'no record')
  for (const [query, found] of [
    [{ finished: true }, ['a']],
    [{}, ['a', 'b', 'c']],
  ] as const) {
    const listed: string[] = []
    for await (const { uuid } of persistence.listBooks(query)) listed.push(uuid)
    expect(listed.toSorted()).toEqual(found)
  }
  await expect(persistence.getBook('b')).rejects.toThrow('1.log is damaged')
})

test('files whose names have a number that is written in another way are not taken for records or logs', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  const log = await persistence.acquire(requestOf('uuid', 1))
  await log.write({ atoms: [atom('one')] })
  const record = await fileNamed(directory, 'book.record')
  const folder = dirname(await fileNamed(directory, '1.log'))
  const strange = ['book.01.record', 'book.00.record', 'book.0.record', 'book.99999999999999999999.record']
  for (const name of strange) await copyFile(record, join(dirname(record), name))
  for (const name of ['07.log', '7.00.log', '7.0.log', '07.mark', '99999999999999999999.mark'])
    await copyFile(join(folder, '1.log'), join(folder, name))
  await log.write({ atoms: [atom('two')] })
  await persistence.updateBook('uuid', { meta: { changed: true } })
  expect(await persistence.getBook('uuid')).toMatchObject({ meta: { changed: true }, flows: [{ run: 1 }] })
  const nextOwner = await persistence.acquire(requestOf('uuid', 2))
  expect(nextOwner.flow.atoms.map(({ name }) => name)).toEqual(['one', 'two'])
})

test('a record or a log whose name is a link to nothing is damage, and is reported', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  for (const uuid of ['a', 'b']) await persistence.acquire(requestOf(uuid, 1))
  const files = await filesBelow(directory)
  const beside = (book: string, name: string) =>
    join(directory, dirname(files.find((file) => file.includes(`/${book}/`) && file.endsWith(name)) ?? ''))
  await symlink('nowhere', join(beside('a', 'book.record'), 'book.5.record'))
  await symlink('nowhere', join(beside('b', '1.log'), '5.log'))
  await expect(persistence.getBook('a')).rejects.toThrow('book.5.record is damaged')
  await expect(persistence.updateBook('a', { meta: {} })).rejects.toThrow('book.5.record is damaged')
  await expect(persistence.getBook('b')).rejects.toThrow('5.log is a link to nothing')
})

test.each<[string, (path: string, beside: string) => unknown]>([
  ['a FIFO', (path) => execFileSync('mkfifo', [path])],
  ['a link to a device that never ends', (path) => symlink('/dev/zero', path)],
  ['a link to the log of another book', (path, beside) => symlink(beside, path)],
  ['a folder', (path) => mkdir(path)],
])('%s in the place of a file is damage of that one book, and holds up nobody', async (_, put) => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  for (const uuid of ['log', 'mark', 'record', 'whole'])
    await (await persistence.acquire(requestOf(uuid, 1))).write({ state: 'SUCCESS' })
  const files = (await filesBelow(directory)).map((file) => join(directory, file))
  const fileOf = (book: string, name: string) =>
    files.find((file) => file.includes(`/${book}/`) && file.endsWith(name)) ?? ''
  const whole = fileOf('whole', '1.log')
  await put(join(dirname(fileOf('log', '1.log')), '2.log'), whole)
  await put(join(dirname(fileOf('mark', '1.log')), '2.mark'), whole)
  await put(join(dirname(fileOf('record', 'book.record')), 'book.5.record'), fileOf('whole', 'book.record'))
  const damaged = (file: string) => expect.objectContaining({ message: expect.stringMatching(file), retryable: false })
  await expect(persistence.getBook('log')).rejects.toEqual(damaged(String.raw`2\.log is damaged: .*not a regular file`))
  await expect(persistence.acquire(requestOf('log', 3))).rejects.toEqual(damaged('2.log is damaged'))
  await expect(persistence.acquire(requestOf('mark', 2))).rejects.toEqual(damaged('2.mark is damaged'))
  await expect(persistence.getBook('record')).rejects.toEqual(damaged('book.5.record is damaged'))
  const listed: string[] = []
  for await (const { uuid } of persistence.listBooks({ state: 'SUCCESS' })) listed.push(uuid)
  expect(listed).toContain('whole')
  expect(await persistence.getBook('whole')).toMatchObject({ flows: [{ state: 'SUCCESS' }] })
})

describe('rights', () => {
  const rightsBelow = async (directory: string) => {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true })
    const paths = [directory, ...entries.map((entry) => join(entry.parentPath, entry.name))]
    const rights = await Promise.all(paths.map(async (path) => ({ path, stat: await stat(path) })))
    return {
      folders: new Set(rights.filter(({ stat }) => stat.isDirectory()).map(({ stat }) => stat.mode & 0o7777)),
      files: new Set(rights.filter(({ stat }) => stat.isFile()).map(({ stat }) => stat.mode & 0o7777)),
    }
  }
  const fill = async (uri: string) => {
    await using persistence = await openPersistence(uri)
    const log = await persistence.acquire(requestOf('uuid', 1))
    await log.write({ atoms: [atom('one')] })
    await persistence.updateBook('uuid', { meta: { changed: true } })
  }

  test('what is made is for the user alone', async () => {
    const directory = join(await testDirectory(), 'a', 'logbooks')
    await fill(`directory:${directory}`)
    expect(await rightsBelow(dirname(directory))).toEqual({ folders: new Set([0o700]), files: new Set([0o600]) })
  })

  test('a folder that all users may write in makes nothing of it shared', async () => {
    const directory = await testDirectory()
    await chmod(directory, 0o1777)
    await fill(`directory:${directory}`)
    expect(await rightsBelow(directory)).toEqual({ folders: new Set([0o1777, 0o700]), files: new Set([0o600]) })
  })

  test('share=group is for the group, too, whatever the umask is; so is a folder in which the group may write', async () => {
    const outer = await testDirectory()
    await fill(`directory:${outer}/asked?share=group`)
    await mkdir(join(outer, 'there'))
    await chmod(join(outer, 'there'), 0o2770)
    await fill(`directory:${outer}/there`)
    for (const name of ['asked', 'there'])
      expect(await rightsBelow(join(outer, name))).toEqual({ folders: new Set([0o2770]), files: new Set([0o660]) })
  })

  test('share=group of a folder that is not shared is refused, and so is every other value', async () => {
    const directory = await testDirectory()
    await expect(openPersistence(`directory:${directory}?share=group`)).rejects.toThrow('its group may not write there')
    await expect(openPersistence(`directory:${directory}?share=all`)).rejects.toThrow(
      "share must be 'group', got 'all'",
    )
  })
})

variant('reading never fails beside runs that take over from each other', async () => {
  const directory = await testDirectory()
  await using persistence = await openPersistence(`directory:${directory}`)
  const uuid = randomUUID()
  await persistence.acquire(requestOf(uuid, 1))
  let run = 1
  const takingOver = (async () => {
    while (run < 100) await (await persistence.acquire(requestOf(uuid, ++run))).close()
  })()
  while (run < 100) {
    const before = run
    const [flow] = (await persistence.getBook(uuid)).flows
    expect(flow?.run).toBeGreaterThanOrEqual(before - 1)
  }
  await takingOver
})

/** A record as it lies in a file, written down once more here: a change of the format must not go unnoticed. */
function framed(record: unknown): Buffer {
  const payload = Buffer.from(encode(record, 'msgpack'))
  const head = Buffer.alloc(8)
  head.writeUInt32BE(payload.length, 0)
  head.writeUInt32BE(crc32Of(payload), 4)
  return Buffer.concat([head, payload])
}

function crc32Of(bytes: Buffer): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}
