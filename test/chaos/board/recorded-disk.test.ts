/** Which writes a sync covers, as a log of strace tells it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { randomly } from '../../support/random.ts'
import { readTrace } from '../../support/strace.ts'
import { RecordedDisk } from './recorded-disk.ts'

const CUTS = 200

const hex = (text: string) => [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
const folder = `3<${hex('/disk')}>`
const file = `4<${hex('/disk/a')}>`
const other = `9<${hex('/disk/a')}>`
const created = `1 openat(AT_FDCWD<${hex('/')}>, "${hex('/disk/a')}", O_RDWR|O_CREAT, 0644) = ${file}`
const named = `1 fsync(${folder}) = 0`
const write = (text: string, at: number) => `pwrite64(${file}, "${hex(text)}", ${text.length}, ${at}`

/** Returns all contents of the file that many cuts after the last line leave; `none` where there is no file. */
async function contentsAfter(...lines: readonly string[]): Promise<string[]> {
  const place = await mkdtemp(join(tmpdir(), 'jobboard-trace-'))
  try {
    await writeFile(join(place, 'log'), `${lines.join('\n')}\n`)
    const disk = new RecordedDisk('/disk', await readTrace(join(place, 'log')))
    const random = randomly()
    const cuts = Array.from({ length: CUTS }, () => disk.cut(lines.length, random).get('a'))
    return [...new Set(cuts.map((content) => content?.toString().replaceAll('\0', '.') ?? 'none'))].sort()
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

test.each([
  ['the file of a folder that was not synced', [created], ['', 'none']],
  ['a write without a sync', [created, named, `1 ${write('x', 0)}) = 1`], ['', '.', 'x']],
  ['a write before a sync', [created, named, `1 ${write('x', 0)}) = 1`, `1 fdatasync(${file}) = 0`], ['x']],
  ['the sync of another process', [created, named, `1 ${write('x', 0)}) = 1`, `2 fsync(${other}) = 0`], ['x']],
  ['a sync that has failed', [created, named, `1 ${write('x', 0)}) = 1`, `1 fsync(${file}) = -1 EIO`], ['', '.', 'x']],
  [
    'a sync that has not ended',
    [created, named, `1 ${write('x', 0)}) = 1`, `1 fdatasync(${file} <unfinished ...>`],
    ['', '.', 'x'],
  ],
  [
    'a write that began during the sync',
    [
      ...[created, named, `1 ${write('x', 0)}) = 1`, `2 fdatasync(${file} <unfinished ...>`],
      ...[`1 ${write('y', 0)}) = 1`, '2 <... fdatasync resumed>) = 0'],
    ],
    ['x', 'y'],
  ],
  [
    'a write that ended during the sync',
    [
      ...[created, named, `1 ${write('x', 0)} <unfinished ...>`, `2 fdatasync(${file} <unfinished ...>`],
      ...['1 <... pwrite64 resumed>) = 1', '2 <... fdatasync resumed>) = 0'],
    ],
    ['', '.', 'x'],
  ],
  ['a part of a write', [created, named, `1 ${write('xy', 0)}) = 1`, `1 fsync(${file}) = 0`], ['x']],
  [
    'a file that was cut short',
    [created, named, `1 ${write('xy', 0)}) = 2`, `1 fsync(${file}) = 0`, `1 ftruncate(${file}, 1) = 0`],
    ['x', 'xy'],
  ],
  [
    'a file that was removed',
    [created, named, `1 ${write('x', 0)}) = 1`, `1 fsync(${file}) = 0`, `1 unlink("${hex('/disk/a')}") = 0`],
    ['none', 'x'],
  ],
])('%s', async (_what, lines, contents) => {
  expect(await contentsAfter(...lines)).toEqual(contents)
})

test('a write is kept or lost by sectors of 512 bytes', async () => {
  const lines = [created, named, `1 ${write('x'.repeat(1_024), 0)}) = 1024`]
  const shapes = (await contentsAfter(...lines)).map((content) =>
    content.replaceAll('x'.repeat(512), 'X').replaceAll('.'.repeat(512), '-'),
  )
  expect(shapes.sort()).toEqual(['', '--', '-X', 'X', 'XX'])
})

test('what is not simulated is refused', async () => {
  await expect(contentsAfter(created, `1 rename("${hex('/disk/a')}", "${hex('/disk/b')}") = 0`)).rejects.toThrow(
    'rename of /disk/a, /disk/b is not simulated',
  )
})
