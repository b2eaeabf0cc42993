/**
 * A script of the tests as one file of JavaScript, packages left out. What lets a process run TypeScript as it is costs it
 * most of a second of processor time, and tests start many.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { ROOT } from './build.ts'

const FOLDER = join(ROOT, '.test/children')

/** Lets the sources find the files beside them (`package.json`, `.lua`, `.sql`), although they run as a part of one file. */
const SOURCE_URLS: Plugin = {
  name: 'source-urls',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const url = JSON.stringify(pathToFileURL(path).href)
      return { contents: text.replaceAll('import.meta.url', url), loader: 'ts' }
    })
  },
}

const made = new Map<string, Promise<string>>()

/**
 * @param script its path; it must not ask where it is itself
 * @param options.starts paths of scripts that it starts, by names beside its own
 * @param options.bare as the package is built: without what keeps each function its name, which takes time at every call
 * that makes one. The names of classes, and so of errors, may be others
 */
export function compiled(script: string, options: CompileOptions = {}): Promise<string> {
  const making = made.get(script) ?? compile(script, options)
  made.set(script, making)
  return making
}

interface CompileOptions {
  readonly starts?: readonly string[]
  readonly bare?: boolean
}

async function compile(script: string, { starts = [], bare = false }: CompileOptions): Promise<string> {
  const digest = createHash('sha256').update(`${script} ${bare}`).digest('hex').slice(0, 8)
  const name = `${basename(script, '.ts')}-${digest}`
  const { outputFiles } = await build({
    entryPoints: [script],
    write: false,
    bundle: true,
    plugins: [SOURCE_URLS],
    packages: 'external',
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: 'inline',
    keepNames: !bare,
    logLevel: 'silent',
  })
  let text = outputFiles[0]?.text ?? ''
  for (const started of starts)
    text = text.replaceAll(`"${basename(started)}"`, `"${basename(await compiled(started))}"`)
  // Test files run side by side: what one of them is about to start is never half written by another.
  const file = join(FOLDER, `${name}.mjs`)
  const draft = `${file}-${process.pid}`
  await mkdir(FOLDER, { recursive: true })
  await writeFile(draft, text)
  await rename(draft, file)
  return file
}
