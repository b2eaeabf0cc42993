/** The demo on embedded defaults, with everything that a folder can hold. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { usual as test, variant } from '../../variant.ts'
import { Demo, manifestOf, pathOf, runsOf, summaryOf, temporaryFolder, untilFolder, wrongEntries } from './demo.ts'

/** Longer than anybody reads it: who works on such a file is busy until the test cuts it. */
const ENDLESS = 64 * 2 ** 30

test('archives what is there, leaves out what is no file, says what failed and why', async () => {
  const folder = await temporaryFolder()
  const out = join(folder, 'out')
  await mkdir(join(folder, 'nested/deeper'), { recursive: true })
  const names = ['empty', 'nested/deeper/file', 'nested/with space', 'two\nlines', 'umlaut-ä', 'z-fine'].map((name) =>
    Buffer.from(name),
  )
  names.push(Buffer.from('latin1-\xe4', 'latin1'))
  for (const name of names) await writeFile(absolute(folder, name), name.equals(Buffer.from('empty')) ? '' : name)
  const failing = ['z-to-folder', 'z-to-link', 'z-to-pipe', 'z-vanishes']
  for (const name of failing) await writeFile(join(folder, name), name)
  await symlink('z-fine', join(folder, 'link'))
  execFileSync('mkfifo', [join(folder, 'pipe')])
  await writeFile(join(folder, 'a-cut'), '')
  await truncate(join(folder, 'a-cut'), ENDLESS)

  const demo = new Demo([folder, '--out', out, '--concurrency', '1'])
  await demo.says(/^12 jobs posted$/m)
  // The only slot is taken by the endless file: it comes to those behind it afterwards.
  for (const name of failing) await rm(join(folder, name))
  await mkdir(join(folder, 'z-to-folder'))
  await symlink('z-fine', join(folder, 'z-to-link'))
  execFileSync('mkfifo', [join(folder, 'z-to-pipe')])
  await truncate(join(folder, 'a-cut'), 1_000)

  expect(await demo.exitCode()).toBe(1)
  expect(demo.errors).toBe('')
  const manifest = await manifestOf(out)
  const archived = [...names, Buffer.from('a-cut')].sort(Buffer.compare)
  expect(manifest.map((entry) => pathOf(entry).toString('latin1'))).toEqual(
    archived.map((name) => name.toString('latin1')),
  )
  expect(await wrongEntries(folder, out)).toEqual([])
  expect(manifest.map(({ name }) => name)).toEqual(expect.arrayContaining(['two\\nlines', 'latin1-\\xe4', 'umlaut-ä']))
  expect(await summaryOf(out)).toMatchObject({
    files: 8,
    failures: [
      { name: 'z-to-folder', reason: 'it is no regular file any more' },
      { name: 'z-to-link', reason: expect.stringContaining('it cannot be read: ELOOP') },
      { name: 'z-to-pipe', reason: 'it is no regular file any more' },
      { name: 'z-vanishes', reason: 'it cannot be read: ENOENT: no such file or directory' },
    ],
    leftOut: [
      { name: 'link', reason: 'a link' },
      { name: 'pipe', reason: 'a pipe' },
    ],
    unfinished: [],
  })
  expect(demo.output).toContain('  z-vanishes: it cannot be read: ENOENT: no such file or directory\n')
  expect(demo.output).toContain('  link: a link\n')
  // Nothing half done is left behind.
  expect(await readdir(join(out, 'files'))).toHaveLength(8)
  expect(await readdir(join(out, 'manifest'))).toHaveLength(8)
})

variant('a file that changes between its hash and its archive is archived as it is afterwards', async () => {
  const folder = await temporaryFolder()
  const out = join(await temporaryFolder(), 'out')
  await writeFile(join(folder, 'large'), '')
  await truncate(join(folder, 'large'), 512 * 2 ** 20)
  const demo = new Demo([folder, '--out', out])
  await demo.says(/^archiving/m)
  await untilFolder(join(out, 'files'), (names) => names.length > 0)
  await truncate(join(folder, 'large'), 1_000)
  expect(await demo.exitCode()).toBe(0)
  expect(await manifestOf(out)).toMatchObject([{ name: 'large', bytes: 1_000 }])
  expect(await wrongEntries(folder, out)).toEqual([])
  expect(await runsOf(out)).toEqual([2])
})

variant('without options archives a folder that npm ci brings, into a new one', async () => {
  const cwd = await temporaryFolder()
  await mkdir(join(cwd, 'node_modules/pino/lib'), { recursive: true })
  await writeFile(join(cwd, 'node_modules/pino/lib/one.js'), 'one')
  const runs = [new Demo([], { cwd, way: 'tsx' }), new Demo([], { cwd })]
  for (const demo of runs) expect(await demo.exitCode()).toBe(0)
  const outs = await readdir(join(cwd, 'archives'))
  expect(outs).toHaveLength(2)
  for (const out of outs) {
    expect(out).toMatch(/^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(-2)?$/)
    expect(await manifestOf(join(cwd, 'archives', out))).toMatchObject([{ name: 'lib/one.js', bytes: 3 }])
  }
})

variant('conductors in processes of their own share the board in a file, which is deleted at the end', async () => {
  const folder = await temporaryFolder()
  const out = join(await temporaryFolder(), 'out')
  for (const name of ['one', 'two', 'three']) await writeFile(join(folder, name), name)
  const demo = new Demo([folder, '--out', out, '--conductors', '2'])
  expect(await demo.conductorPids()).toHaveLength(2)
  const [, file = ''] = await demo.says(/^ {2}npx jobboard jobs --board sqlite:(\/.*)$/m)
  expect(await demo.exitCode()).toBe(0)
  expect(await wrongEntries(folder, out)).toEqual([])
  expect((await manifestOf(out)).map(({ name }) => name)).toEqual(['one', 'three', 'two'])
  expect(existsSync(dirname(file))).toBe(false)
})

variant('Ctrl-C brings what runs to its end and reports; a second one does not wait for it', async () => {
  const folder = await temporaryFolder()
  const out = join(await temporaryFolder(), 'out')
  await writeFile(join(folder, 'a-file'), 'a file')
  await writeFile(join(folder, 'b-endless'), '')
  await truncate(join(folder, 'b-endless'), ENDLESS)
  const demo = new Demo([folder, '--out', out, '--concurrency', '1'])
  await demo.says(/^1 file archived of 2/m)
  demo.signal('SIGINT')
  await demo.says(/^interrupted/m)
  demo.signal('SIGTERM')
  expect(await demo.exitCode()).toBe(130)
  expect(demo.output).toMatch(/^not done {2}1 file$/m)
  // The board is deleted with its jobs.
  expect(demo.output).not.toContain('of this run')
  expect(await manifestOf(out)).toMatchObject([{ name: 'a-file' }])
})

function absolute(folder: string, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${folder}/`), name])
}
