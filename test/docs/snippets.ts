/** The examples on the pages: compiled as a stranger would who has installed the package, and run. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { expect } from 'vitest'
import { ensureBuilt, ROOT } from '../support/build.ts'
import type { Page } from './pages.ts'

export interface Snippet {
  /** Of the page it is on, `docs/guides/flows.md` say. */
  readonly page: string
  /** Its number on the page, and the heading above it. */
  readonly title: string
  readonly code: string
  /** Without an extension. */
  readonly file: string
}

export function snippetsOf({ name, text, blocks }: Page): Snippet[] {
  const lines = text.split('\n')
  return blocks
    .filter(({ language }) => language === 'ts')
    .map(({ code, line }, index) => ({
      page: name,
      title: `${index + 1}, under ${lines
        .slice(0, line)
        .findLast((each) => each.startsWith('#'))
        ?.replace(/^#+ /, '')}`,
      code,
      file: `${name.replace(/\W+/g, '-')}-${index + 1}`,
    }))
}

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ['node'],
  strict: true,
  skipLibCheck: true,
}

/** Compiles all of them as one program. @returns what the compiler has to say */
export async function compile(folder: string, snippets: readonly Snippet[]): Promise<string[]> {
  await Promise.all(snippets.map(({ file, code }) => writeFile(join(folder, `${file}.mts`), code)))
  const program = ts.createProgram({
    rootNames: snippets.map(({ file }) => join(folder, `${file}.mts`)),
    options: OPTIONS,
    host: { ...ts.createCompilerHost(OPTIONS), getCurrentDirectory: () => folder },
  })
  const told = ts.getPreEmitDiagnostics(program)
  program.emit()
  return told.map(({ file, start = 0, messageText }) => {
    const line = file ? file.getLineAndCharacterOfPosition(start).line + 1 : 0
    return `${file?.fileName.slice(folder.length + 1)}:${line} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
  })
}

/** Makes it JavaScript, without a look at its types: {@link compile} has that for all pages. */
export async function transpile(folder: string, snippets: readonly Snippet[]): Promise<void> {
  for (const { file, code } of snippets) {
    const { outputText } = ts.transpileModule(code, { compilerOptions: OPTIONS, fileName: `${file}.mts` })
    await writeFile(join(folder, `${file}.mjs`), outputText)
  }
}

/** @param here puts what this run has in the place of what a reader has */
export async function expectPrints(
  folder: string,
  { file, code }: Snippet,
  here = (text: string) => text,
): Promise<void> {
  const path = join(folder, `${file}.mjs`)
  await writeFile(path, here(await readFile(path, 'utf8')))
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [path], { cwd: folder })
  expect({ printed: linesOf(stdout), stderr }).toEqual({ printed: expectedOutput(code), stderr: '' })
}

export function linesOf(text: string): string[] {
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => line.trimEnd())
}

/** The comments behind what prints, and those that have a line for themselves, in order. */
export function expectedOutput(code: string): string[] {
  return [...code.matchAll(/^(?:.*console\.log\(.*\) +)?\/\/ (.*)$/gm)].map((found) => found[1] ?? '')
}

/** Somebody else's package that has installed ours, as it is published. */
export async function installedPackage(): Promise<string> {
  await ensureBuilt()
  // Inside of ours, so that the drivers that ours takes are found.
  const folder = await mkdtemp(join(ROOT, '.test-docs-'))
  const ours = join(folder, 'node_modules/jobboard')
  await mkdir(ours, { recursive: true })
  await cp(join(ROOT, 'dist'), join(ours, 'dist'), { recursive: true })
  await cp(join(ROOT, 'package.json'), join(ours, 'package.json'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }))
  return folder
}
