/**
 * Every example on every page compiles, and those that need no server print what their comments say. Those that need one
 * are run beside it, in `test/guides/`.
 */
import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allPages } from './pages.ts'
import { compile, expectedOutput, installedPackage, linesOf, type Snippet, snippetsOf } from './snippets.ts'

const PAGES = await allPages()
const SNIPPETS = PAGES.flatMap(snippetsOf)
const ALONE = SNIPPETS.filter(({ code }) => !/:\/\/|127\.0\.0\.1|example\.com/.test(withoutComments(code)))

function withoutComments(code: string): string {
  return code.replace(/(^| )\/\/ .*$/gm, '')
}

/** Tells what each of them has printed, a line of JSON for each: one process for all. */
const RUNNER = `
import { format } from 'node:util'
const out = console.log
for (const file of process.argv.slice(2)) {
  const printed = []
  console.log = (...args) => printed.push(format(...args))
  console.error = (...args) => printed.push('error: ' + format(...args))
  const failed = await import('./' + file + '.mjs').then(() => undefined, (error) => String(error?.stack ?? error))
  out(JSON.stringify({ file, printed, failed }))
}
`

describe('every example', () => {
  let folder: string
  let told: string[]
  const printed = new Map<string, { readonly printed: string[]; readonly failed?: string }>()

  beforeAll(async () => {
    folder = await installedPackage()
    told = await compile(folder, SNIPPETS)
    await writeFile(join(folder, 'runner.mjs'), RUNNER)
    const run = promisify(execFile)(process.execPath, ['runner.mjs', ...ALONE.map(({ file }) => file)], { cwd: folder })
    const { stdout } = await run.catch((error: { stdout: string }) => error)
    for (const line of stdout.trim().split('\n')) {
      const { file, ...said } = JSON.parse(line) as { file: string; printed: string[]; failed?: string }
      printed.set(file, said)
    }
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('compiles', () => {
    expect(SNIPPETS.length).toBeGreaterThan(50)
    expect(told).toEqual([])
  })

  test.each(ALONE.map((snippet) => ({ ...snippet, where: `${snippet.page}: ${snippet.title}` })))(
    'prints what it says: $where',
    (snippet) => {
      const said = printed.get(snippet.file)
      expect({ ...said, printed: said?.printed.flatMap(linesOf) }).toEqual({
        printed: promisedBy(snippet),
      })
    },
  )
})

/** In the README's quick start a task prints, and the line is too long for another comment. */
function promisedBy({ page, code }: Snippet): string[] {
  return page === 'README.md' ? ['Hello, Ada!', ...expectedOutput(code)] : expectedOutput(code)
}

test("the README's quick start is the only program there", () => {
  expect(SNIPPETS.filter(({ page }) => page === 'README.md')).toHaveLength(1)
})

test('JavaScript and JSON on the pages can be read', () => {
  const blocks = PAGES.flatMap(({ name, blocks }) => blocks.map((block) => ({ name, ...block })))
  const scripts = blocks.filter(({ language }) => language === 'js')
  for (const { name, code, line } of scripts) {
    const { diagnostics = [] } = ts.transpileModule(code, {
      fileName: 'a.mjs',
      reportDiagnostics: true,
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, allowJs: true },
    })
    expect(
      diagnostics.map(({ messageText }) => messageText),
      `${name}:${line}`,
    ).toEqual([])
  }
  const values = blocks.filter(({ language }) => language === 'json')
  for (const { code } of values) for (const line of objects(code)) expect(() => JSON.parse(line)).not.toThrow()
  expect(scripts.length).toBeGreaterThan(1)
})

/** One value, or one a line. */
function objects(code: string): string[] {
  try {
    JSON.parse(code)
    return [code]
  } catch {
    return code.trim().split('\n')
  }
}
