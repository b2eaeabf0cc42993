/** The files of the page, as they are built. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuilt, ROOT } from '../../support/build.ts'

const FOLDER = join(ROOT, 'dist/ui/page')
const MAX_BYTES = 60_000

beforeAll(ensureBuilt)

async function names(): Promise<string[]> {
  const { script, style } = JSON.parse(await readFile(join(FOLDER, 'manifest.json'), 'utf8')) as Record<string, string>
  return [script ?? '', style ?? '']
}

test('script and style sheet have less than 60 KB compressed', async () => {
  const sizes = await Promise.all(
    (await names()).map(async (name) => (await readFile(join(FOLDER, `${name}.gz`))).length),
  )
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MAX_BYTES)
})

test('there is nothing but them and their compressed forms, which have the same contents', async () => {
  const all = await names()
  const files = all.flatMap((name) => [name, `${name}.br`, `${name}.gz`])
  expect((await readdir(FOLDER)).sort()).toEqual([...files, 'manifest.json'].sort())
  for (const name of all) {
    const plain = await readFile(join(FOLDER, name))
    expect(gunzipSync(await readFile(join(FOLDER, `${name}.gz`))).equals(plain)).toBe(true)
    expect(brotliDecompressSync(await readFile(join(FOLDER, `${name}.br`))).equals(plain)).toBe(true)
  }
})

test('the page has no schemas, no markup from texts, no styles in attributes, and names no other host', async () => {
  const [script = '', style = ''] = await Promise.all(
    (await names()).map((name) => readFile(join(FOLDER, name), 'utf8')),
  )
  expect(script).not.toContain('ZodError')
  const sources = (await readdir(join(ROOT, 'src/ui/page'), { recursive: true })).filter((name) => /\.tsx?$/.test(name))
  const text = (await Promise.all(sources.map((name) => readFile(join(ROOT, 'src/ui/page', name), 'utf8')))).join('\n')
  expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacent|\bstyle=|eval\(|document\.write/)
  expect(text.match(/https?:\/\/(?!page\/)\S+/g) ?? []).toEqual([])
  expect(style).not.toMatch(/url\(|@import/)
})
