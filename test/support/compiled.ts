/**
 * A script of the tests as one file of JavaScript, packages left out. What lets a process run TypeScript as it is costs it
 * most of a second of processor time, and tests start many.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { ROOT } from './build.ts'
import { toBuiltPath } from './built-library.ts'

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

/** Leaves the sources of the library out of the file, which imports the built library instead: then flows and the pool's child have the same classes. */
const BUILT_LIBRARY: Plugin = {
  name: 'built-library',
  setup: ({ onResolve }) => {
    onResolve({ filter: /^\.\.?\/.*\.ts$/ }, ({ path, resolveDir }) => {
      const built = toBuiltPath(resolve(resolveDir, path))
      return built ? { path: pathToFileURL(built).href, external: true } : undefined
    })
  },
}

const made = new Map<string, Promise<string>>()

/**
 * @param script its path; it must not ask where it is itself
 * @param options.starts paths of scripts that it starts, by names beside its own
 * @param options.library a module of flows needs `built`, for a pool of a process which has that library
 * @param options.bare as the package is built: without what keeps each function its name, which takes time at every call
 * that makes one. The names of classes, and so of errors, may be others
 */
export function compiled(script: string, options: CompileOptions = {}): Promise<string> {
  const key = `${script} ${options.bare} ${options.library}`
  const making = made.get(key) ?? compile(script, options)
  made.set(key, making)
  return making
}

interface CompileOptions {
  readonly starts?: readonly string[]
  readonly bare?: boolean
  /** `bundled`, the default: the file has in it what it needs of the library. `built`: it imports the built library. */
  readonly library?: 'bundled' | 'built'
}

async function compile(
  script: string,
  { starts = [], bare = false, library = 'bundled' }: CompileOptions,
): Promise<string> {
  const digest = createHash('sha256').update(`${script} ${bare} ${library}`).digest('hex').slice(0, 8)
  const name = `${basename(script, '.ts')}-${digest}`
  const { outputFiles } = await build({
    entryPoints: [script],
    write: false,
    bundle: true,
    plugins: library === 'built' ? [BUILT_LIBRARY] : [SOURCE_URLS],
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
