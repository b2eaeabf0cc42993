/** The parts of the demo that need no process of their own. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type JobBoard, NotConnected, OutcomeUnknown, openBoard, PayloadTooLarge, runFlow } from 'jobboard'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startConductors } from '../../../examples/archive/conductors.ts'
import { type ArchiveStore, archiveFlow } from '../../../examples/archive/flow.ts'
import { post } from '../../../examples/archive/posting.ts'
import { printableBytes, printablePath, printableText, shellWord } from '../../../examples/archive/printable.ts'
import { walk } from '../../../examples/archive/walk.ts'
import { temporaryFolder } from './demo.ts'

describe('posting', () => {
  const flow = archiveFlow('archive')
  const source = { folder: '/in', path: 'YQ==', name: 'a' }
  const target = { folder: '/out', archive: 'files/a.gz', manifest: 'manifest/a.json' }
  const request = { uuid: '0193a000-0000-7000-8000-000000000001', name: 'a', store: { source, target } }
  const away = new NotConnected('nothing was sent')
  const unknown = new OutcomeUnknown('nobody knows')
  const { signal } = new AbortController()

  test.each([
    { what: 'a board that is away', errors: [away, away], done: false },
    { what: 'a lost answer to a post that was not done', errors: [unknown], done: false },
    { what: 'a lost answer to a post that was done', errors: [unknown], done: true },
    { what: 'one trouble after the other', errors: [away, unknown, away, unknown], done: false },
  ])('outlives $what', async ({ errors, done }) => {
    await using board = await openBoard('memory:')
    const job = await post(request, { board: troubled(board, errors, { done }), flow, signal })
    expect(job.uuid).toBe(request.uuid)
    expect(await board.countJobs()).toBe(1)
  })

  test('gives up at what will not change, and when its signal fires', async () => {
    await using board = await openBoard('memory:')
    const tooLarge = troubled(board, [new PayloadTooLarge('no')], { done: false })
    await expect(post(request, { board: tooLarge, flow, signal })).rejects.toThrow(PayloadTooLarge)
    const told = AbortSignal.abort(new Error('told to'))
    await expect(post(request, { board, flow, signal: told })).rejects.toThrow('told to')
    expect(await board.countJobs()).toBe(0)
  })
})

/** The board, except that its first posts fail; when `done`, only the answers get lost. */
function troubled(board: JobBoard, errors: readonly Error[], options: { done: boolean }): JobBoard {
  const left = [...errors]
  return new Proxy(board, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]) => {
        const error = key === 'post' ? left.shift() : undefined
        if (error && !options.done) throw error
        const result: unknown = await Reflect.apply(value, target, args)
        if (error) throw error
        return result
      }
    },
  })
}

describe('the flow', () => {
  async function file(): Promise<{ folder: string; store: ArchiveStore }> {
    const folder = await temporaryFolder()
    await mkdir(join(folder, 'files'))
    await writeFile(join(folder, 'a'), 'content')
    const source = { folder, path: Buffer.from('a').toString('base64'), name: 'a' }
    return { folder, store: { source, target: { folder, archive: 'files/1.gz', manifest: 'manifest/1.json' } } }
  }

  test('leaves nothing behind when it fails', async () => {
    const { folder, store } = await file()
    // There is no folder to record it in.
    await expect(runFlow(archiveFlow('archive'), store)).rejects.toThrow('ENOENT')
    expect(await readdir(join(folder, 'files'))).toEqual([])
  })

  test('comes to the same when it runs twice, also over what a dead process left', async () => {
    const { folder, store } = await file()
    await mkdir(join(folder, 'manifest'))
    await writeFile(join(folder, 'files/1.gz'), 'half an arch')
    await writeFile(join(folder, 'manifest/1.json.part'), '{"half')
    const results = [await runFlow(archiveFlow('archive'), store), await runFlow(archiveFlow('archive'), store)]
    expect(results[0]).toEqual(results[1])
    expect(await readdir(join(folder, 'files'))).toEqual(['1.gz'])
    expect(await readdir(join(folder, 'manifest'))).toEqual(['1.json'])
    expect(gunzipSync(await readFile(join(folder, 'files/1.gz'))).toString()).toBe('content')
  })
})

describe('walking', () => {
  test('goes through every folder, in the order of names, except those to skip', async () => {
    const folder = await temporaryFolder()
    for (const name of ['b', 'out', 'a/c', 'empty', 'a/out']) await mkdir(join(folder, name), { recursive: true })
    for (const name of ['z', 'b/one', 'a/two', 'a/c/three', 'out/no', 'a/out/yes', 'A']) {
      await writeFile(join(folder, name), name)
    }
    const found: string[] = []
    for await (const { path } of walk(folder, { except: [join(folder, 'out'), join(folder, 'a/c')] }))
      found.push(path.toString())
    expect(found).toEqual(['A', 'z', 'a/two', 'a/out/yes', 'b/one'])
  })

  test('says which folder cannot be listed', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'file'), '')
    await mkdir(join(folder, 'gone'))
    const walking = walk(folder, { except: [join(folder, 'gone', '..', '..')] })
    expect((await walking.next()).value).toMatchObject({ kind: 'file' })
    await rm(join(folder, 'gone'), { recursive: true })
    expect((await walking.next()).value).toEqual({
      path: Buffer.from('gone'),
      kind: 'folder',
      reason: 'ENOENT: no such file or directory',
    })
    expect((await walking.next()).done).toBe(true)
  })
})

test('conductors whose processes cannot be started are as gone as dead ones', async () => {
  const { execPath } = process
  process.execPath = '/nowhere/node'
  onTestFinished(() => {
    process.execPath = execPath
  })
  await using board = await openBoard('memory:')
  const said: string[] = []
  const { signal } = new AbortController()
  const assignment = { board: 'zookeeper://h', persistence: 'memory:', flow: 'archive', concurrency: 1, isolate: false }
  const say = (line: string) => said.push(line)
  await using conductors = await startConductors(board, { ...assignment, conductors: 2, say, signal })
  await conductors.allGone
  expect(said).toHaveLength(2)
  expect(said[1]).toMatch(/^conductor 2 \(process none\) is gone \(spawn \/nowhere\/node ENOENT\)/)
})

test('what is printed does not move the cursor, and can be distinguished', () => {
  const printed = ['plain ä', 'two\nlines', 'bell\x07', 'left\u202eright', 'back\\slash'].map((name) =>
    printablePath(Buffer.from(name)),
  )
  expect(printed).toEqual(['plain ä', 'two\\nlines', 'bell\\u{07}', 'left\\u{202e}right', 'back\\\\slash'])
  expect(printablePath(Buffer.from('caf\xe9\n', 'latin1'))).toBe('caf\\xe9\\n')
  expect(printableText('\x1b[31m')).toBe('\\u{1b}[31m')
  expect([0, 999, 1_000, 1_234_567, 5e15].map(printableBytes)).toEqual([
    '0 bytes',
    '999 bytes',
    '1.0 kB',
    '1.2 MB',
    '5000.0 TB',
  ])
  expect(shellWord('directory:/a/b')).toBe('directory:/a/b')
  expect(shellWord("it's ?")).toBe("'it'\\''s ?'")
})
