/** The examples in the guides: compiled and run as a stranger would who has installed the package. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { ensureBuilt, ROOT } from '../support/build.ts'

export interface Snippet {
  readonly title: string
  readonly code: string
  /** It takes the `zookeeper` package. */
  readonly native: boolean
}

export function guideOf(name: string): Promise<string> {
  return readFile(join(ROOT, `docs/guides/${name}.md`), 'utf8')
}

export function snippetsOf(guide: string): Snippet[] {
  return [...guide.matchAll(/^```ts( native)?\n([\s\S]*?)^```/gm)].map((found, index) => ({
    title: `${index + 1}, under ${guide
      .slice(0, found.index)
      .match(/^## .*$/gm)
      ?.at(-1)
      ?.slice(3)}`,
    code: found[2] ?? '',
    native: found[1] !== undefined,
  }))
}

/** Compiles each under its number. @throws Error with what the compiler says */
export async function compile(folder: string, snippets: readonly Snippet[]): Promise<void> {
  await Promise.all(snippets.map(({ code }, index) => writeFile(join(folder, `${index + 1}.mts`), code)))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', folder], { cwd: folder }).catch((error) => {
    throw new Error(`the examples do not compile: ${error.stdout}`, { cause: error })
  })
}

/** @param snippet.here puts what this run has in the place of what a reader has */
export async function expectPrints(
  folder: string,
  { number, code, here = (text) => text }: { number: number; code: string; here?: (code: string) => string },
): Promise<void> {
  const file = join(folder, `${number}.mjs`)
  await writeFile(file, here(await readFile(file, 'utf8')))
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { cwd: folder })
  const printed = stdout.split('\n').map((line) => line.trimEnd())
  expect({ printed, stderr }).toEqual({ printed: [...promised(code), ''], stderr: '' })
}

/** The comments behind what prints, and those that have a line for themselves, in order. */
function promised(code: string): string[] {
  return [...code.matchAll(/^(?:.*console\.log\(.*\) )?\/\/ (.*)$/gm)].map((found) => found[1] ?? '')
}

/** Somebody else's package that has installed ours, as it is published. */
export async function strangersPackage(): Promise<string> {
  await ensureBuilt()
  const folder = await mkdtemp(join(ROOT, '.test-guide-'))
  const ours = join(folder, 'node_modules/jobboard')
  await mkdir(ours, { recursive: true })
  await cp(join(ROOT, 'dist'), join(ours, 'dist'), { recursive: true })
  await cp(join(ROOT, 'package.json'), join(ours, 'package.json'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }))
  const compilerOptions = {
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
  }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mts'] }))
  return folder
}
