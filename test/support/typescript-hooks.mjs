/**
 * Hooks with which a process of the tests runs TypeScript, in half the processor time that tsx takes: imports of sources
 * load the built files in `dist`, and other files are transformed once.
 */

import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('../..', import.meta.url).href
const SOURCES = `${ROOT}src/`
const TRANSFORMED = new URL('.test/transformed/', ROOT)
const OPTIONS = { loader: 'ts', format: 'esm', target: 'node20', sourcemap: 'inline', keepNames: true }
const { version } = createRequire(import.meta.url)('esbuild/package.json')

export async function resolve(specifier, context, next) {
  const found = await next(specifier, context)
  const [url] = found.url.split('?')
  if (!url.startsWith(SOURCES) || !url.endsWith('.ts')) return found
  return { ...found, url: `${ROOT}dist/${url.slice(SOURCES.length, -'ts'.length)}js`, format: 'module' }
}

export async function load(url, context, next) {
  if (!url.split('?')[0].endsWith('.ts')) return next(url, context)
  const path = fileURLToPath(url)
  return { format: 'module', shortCircuit: true, source: await transform(path, await readFile(path, 'utf8')) }
}

async function transform(path, text) {
  const digest = createHash('sha256')
    .update(JSON.stringify([version, OPTIONS, path, text]))
    .digest('hex')
  const file = new URL(`${digest}.mjs`, TRANSFORMED)
  const known = await readFile(file, 'utf8').catch(() => undefined)
  if (known !== undefined) return known
  const { transformSync } = await import('esbuild')
  // Without a service of esbuild, which would have to be ended when the last of several transforms is done.
  const { code } = transformSync(text, { ...OPTIONS, sourcefile: path })
  // Processes start side by side: what one of them reads is never half written by another.
  await mkdir(TRANSFORMED, { recursive: true })
  const draft = new URL(`${digest}-${process.pid}`, TRANSFORMED)
  await writeFile(draft, code)
  await rename(draft, file)
  return code
}
