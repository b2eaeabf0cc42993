/** Logs and books while the disk fails, or another process takes over or removes them, at the worst moment. */
import { writeFileSync } from 'node:fs'
import { mkdir, open, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ClaimLost, Fenced, StorageFailure } from '../../../src/core/errors.ts'
import { acquireTerm } from '../../../src/persistence/directory/acquire.ts'
import { DirectoryFlowLog } from '../../../src/persistence/directory/directory-flow-log.ts'
import { toErrno } from '../../../src/persistence/directory/files.ts'
import { bookFolder, flowFolder, shardFolder } from '../../../src/persistence/directory/layout.ts'
import { readNewestFlow } from '../../../src/persistence/directory/read-flow.ts'
import { encodeMark } from '../../../src/persistence/directory/records.ts'
import { type FlowDetail, openPersistence } from '../../../src/persistence/index.ts'
import { atom, requestOf } from '../flows.ts'
import { testDirectory } from './directories.ts'

interface Call {
  readonly of: 'write' | 'datasync'
  /** Bytes that this write has yet to take. */
  readonly left: number
}

/** A log over a real file that calls `on` after each part of a write and before each sync; what that throws is thrown. */
async function logWith(on: (call: Call) => unknown): Promise<{ log: DirectoryFlowLog; folder: string }> {
  const folder = join(await testDirectory(), 'flow')
  await mkdir(folder)
  const request = requestOf('uuid', 1)
  const acquired = await acquireTerm([folder], request)
  const file = new Proxy(acquired.file, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function') return value
      return async (...parameters: unknown[]) => {
        if (key === 'datasync') await on({ of: key, left: 0 })
        if (key !== 'write') return Reflect.apply(value, target, parameters)
        const [bytes, offset, length, position] = parameters
        const part = Math.min(Number(length), 10)
        const answer: unknown = await Reflect.apply(value, target, [bytes, offset, part, position])
        await on({ of: key, left: Number(length) - part })
        return answer
      }
    },
  })
  const log = new DirectoryFlowLog({
    acquired: { ...acquired, file },
    request,
    folder,
    onClose: () => undefined,
    compact: async () => undefined,
    reacquire: async () => {
      throw new Error('this log is short')
    },
  })
  return { log, folder }
}

async function atomsIn(folder: string): Promise<string[] | undefined> {
  return (await readNewestFlow(folder))?.atoms.map(({ name }) => name)
}

function errno(code: string): Error {
  return Object.assign(new Error(`${code}: refused by the test`), { code })
}

test.each([
  { when: 'at its first bytes', left: Number.POSITIVE_INFINITY },
  { when: 'at its last', left: 0 },
])('a full disk fails a write $when, and what queued behind it; with room again the log goes on', async ({ left }) => {
  let full = false
  const { log, folder } = await logWith((call) => {
    if (!full || call.of !== 'write' || call.left > left) return
    full = false
    throw errno('ENOSPC')
  })
  await log.write({ atoms: [atom('before')] })
  full = true
  const together = [log.write({ atoms: [atom('x1')] }), log.write({ atoms: [atom('x2')] })]
  const behind = Promise.resolve().then(() => log.write({ atoms: [atom('x3')] }))
  for (const write of [...together, behind]) {
    const failure: unknown = await write.catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(StorageFailure)
    expect(failure).toMatchObject({ retryable: true, message: expect.stringContaining('ENOSPC') })
  }
  // As long as x1, so that what is left of x2 would follow it seamlessly.
  await log.write({ atoms: [atom('x4')] })
  await log.close()
  expect(await atomsIn(folder)).toEqual(['before', 'x4'])
})

test('a failed sync ends the log; the same claim goes on with a new one', async () => {
  let broken = false
  const { log, folder } = await logWith((call) => {
    if (broken && call.of === 'datasync') throw errno('EIO')
  })
  await log.write({ atoms: [atom('before')] })
  broken = true
  for (const _ of [1, 2]) {
    const failure: unknown = await log.write({ atoms: [atom('unknown')] }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(StorageFailure)
    expect(failure).toMatchObject({ retryable: true, message: expect.stringContaining('EIO') })
    broken = false
  }
  const again = await acquireTerm([folder], requestOf('uuid', 1))
  expect(again.flow.atoms[0]?.name).toBe('before')
  await again.file.close()
  await log.close()
})

test('writes that queue up while a sync is under way share the next one', async () => {
  let syncs = 0
  const { log, folder } = await logWith((call) => {
    if (call.of === 'datasync') syncs++
  })
  const names = Array.from({ length: 50 }, (_, number) => `a${number}`)
  const first = log.write({ atoms: [atom('first')] })
  const rest = first.then(() => Promise.all(names.map((name) => log.write({ atoms: [atom(name)] }))))
  await rest
  expect(syncs).toBe(2)
  await log.close()
  expect(await atomsIn(folder)).toEqual(['first', ...names])
})

test('a write is refused when a newer run takes over after it was appended and before it is synced', async () => {
  let nextOwner: FlowDetail | undefined
  const { log, folder } = await logWith(async (call) => {
    if (call.of !== 'datasync') return
    const acquired = await acquireTerm([folder], requestOf('uuid', 2))
    nextOwner = acquired.flow
    await acquired.file.close()
  })
  await expect(log.write({ atoms: [atom('racing')] })).rejects.toThrow(ClaimLost)
  await expect(log.write({ atoms: [atom('late')] })).rejects.toThrow(ClaimLost)
  await log.close()
  expect(nextOwner?.atoms.map(({ name }) => name)).toEqual(['racing'])
  expect(await atomsIn(folder)).toEqual(['racing'])
})

test('a run that is overtaken between what it reads and its own log is fenced', async () => {
  const folder = join(await testDirectory(), 'flow')
  await mkdir(folder)
  const request = requestOf('uuid', 1)
  const overtaken = {
    ...request,
    // What is to be acquired is looked up once the predecessor has been read.
    get flow() {
      writeFileSync(join(folder, '9.mark'), encodeMark('another claim'))
      return request.flow
    },
  }
  const refusal: unknown = await acquireTerm([folder], overtaken).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(Fenced)
  expect(refusal).toMatchObject({ newestRun: 9 })
})

test.runIf(process.platform === 'linux')(
  'a book is removed while a run still creates files in its folders',
  async () => {
    const directory = await testDirectory()
    await using persistence = await openPersistence(`directory:${directory}`)
    for (let round = 1; round <= 20; round++) {
      const uuid = `book-${round}`
      const { book, flow } = requestOf(uuid, 1)
      await persistence.createFlow({ book, flow })
      await using folder = await open(flowFolder(bookFolder(directory, uuid), flow.uuid))
      // A slow run creates files through the descriptor of its open folder: see `inFolder`.
      const creating = (async () => {
        for (let file = 1; file <= 50; file++) await writeFile(`/proc/self/fd/${folder.fd}/${file}.tmp`, '')
      })().catch((error: unknown) => toErrno(error))
      expect(await persistence.destroyBook(uuid)).toBe(true)
      expect([undefined, 'ENOENT']).toContain(await creating)
      expect(await readdir(shardFolder(directory, uuid))).toEqual([])
    }
  },
)
