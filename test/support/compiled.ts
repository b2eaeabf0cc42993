/**
 * A script of the tests as one file of JavaScript, packages left out. What lets a process run TypeScript as it is costs it
 * most of a second of processor time, and tests start many.
 */
import { createHash } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { build } from 'esbuild'
import { ROOT } from './build.ts'

/** Two folders below the package, as the sources are: they look for its `package.json` there. */
const FOLDER = join(ROOT, '.test/children')

const made = new Map<string, Promise<string>>()

/**
 * @param script its path; it must not ask where it is itself
 * @param options.starts paths of scripts that it starts, by names beside its own
 */
export function compiled(script: string, options: { readonly starts?: readonly string[] } = {}): Promise<string> {
  const making = made.get(script) ?? compile(script, options)
  made.set(script, making)
  return making
}

async function compile(script: string, { starts = [] }: { readonly starts?: readonly string[] }): Promise<string> {
  const name = `${basename(script, '.ts')}-${createHash('sha256').update(script).digest('hex').slice(0, 8)}`
  const { outputFiles } = await build({
    entryPoints: [script],
    write: false,
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: 'inline',
    keepNames: true,
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
