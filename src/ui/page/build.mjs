/**
 * Bundles the page of the dashboard into `dist/ui/page/`: one script, one style sheet, each also compressed, and `manifest.json`, which
 * names them. The names have a hash of the contents, so that browsers may keep the files for ever.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib'
import { build } from 'esbuild'

const SOURCE = import.meta.dirname
const TARGET = resolve(SOURCE, '../../../dist/ui/page')

const { outputFiles } = await build({
  entryPoints: { app: join(SOURCE, 'main.tsx') },
  outdir: TARGET,
  entryNames: '[name]-[hash]',
  bundle: true,
  minify: true,
  write: false,
  format: 'esm',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  // The first versions that know light-dark() and nested rules.
  target: ['chrome123', 'firefox120', 'safari17.5'],
  legalComments: 'none',
})

mkdirSync(TARGET, { recursive: true })
const manifest = {}
const written = new Set(['manifest.json'])
for (const { path, contents } of outputFiles) {
  const name = basename(path)
  manifest[name.endsWith('.css') ? 'style' : 'script'] = name
  const brotli = brotliCompressSync(contents, { params: { [zlib.BROTLI_PARAM_SIZE_HINT]: contents.length } })
  const forms = { [name]: contents, [`${name}.br`]: brotli, [`${name}.gz`]: gzipSync(contents, { level: 9 }) }
  for (const [file, bytes] of Object.entries(forms)) {
    written.add(file)
    if (!isWritten(join(TARGET, file), bytes)) writeFileSync(join(TARGET, file), bytes)
  }
}
writeFileSync(join(TARGET, 'manifest.json'), `${JSON.stringify(manifest)}\n`)
// A server that runs has read the files at its start, so older ones can go.
for (const file of readdirSync(TARGET)) if (!written.has(file)) rmSync(join(TARGET, file))

/** @param {string} path @param {Uint8Array} bytes */
function isWritten(path, bytes) {
  try {
    return readFileSync(path).equals(bytes)
  } catch {
    return false
  }
}
