/**
 * The reference says what the code says: every error, every event, every option of what is exported; and whatever is
 * exported says in its docstring what it is.
 */
import { join } from 'node:path'
import ts from 'typescript'
import { beforeAll, describe, expect, test } from 'vitest'
import * as errors from '../../src/core/errors.ts'
import { JobFailed, TooManyRequests, WrappedFailure } from '../../src/core/failure.ts'
import { PostgresError } from '../../src/postgres/index.ts'
import * as zookeeper from '../../src/zookeeper/index.ts'
import { ensureBuilt, ROOT } from '../support/build.ts'
import { readPage } from './pages.ts'

/** By what is in its first cell, or by each of several names there. */
function rowsOf(section: string): Map<string, string[]> {
  const rows = new Map<string, string[]>()
  for (const [line] of section.matchAll(/^\| `.*\|$/gm)) {
    const cells = line
      .replaceAll('\\|', '¦')
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    for (const [, name = ''] of (cells[0] ?? '').matchAll(/`([^`]+)`/g)) rows.set(name, cells)
  }
  return rows
}

async function sectionOf(page: string, heading: string): Promise<string> {
  const { text } = await readPage(page)
  const [, section] = text.split(`\n## ${heading}\n`)
  if (section === undefined) throw new Error(`${page} has no section ${heading}`)
  return section.split('\n## ')[0] ?? ''
}

describe('the reference of errors', () => {
  interface ErrorClass {
    readonly name: string
    readonly code: string
    readonly retryable: boolean
  }
  const classes: ErrorClass[] = []
  for (const value of new Set<unknown>([
    ...Object.values(errors),
    ...Object.values(zookeeper),
    JobFailed,
    TooManyRequests,
    WrappedFailure,
  ])) {
    if (typeof value === 'function' && 'code' in value && value.prototype instanceof Error)
      classes.push(value as unknown as ErrorClass)
  }

  test('has every code, with its class and whether to ask again, and no other', async () => {
    const rows = rowsOf((await readPage('docs/reference/errors.md')).text)
    const written = [...rows].map(
      ([code, [, name = '', retryable = '']]) => `${code} ${name} ${retryable.split(';')[0]}`,
    )
    const meant = classes.map(({ code, name, retryable }) => `${code} \`${name}\` ${retryable ? 'yes' : 'no'}`)
    expect(written.sort()).toEqual([...meant, `${PostgresError.code} \`PostgresError\` by its SQLSTATE`].sort())
    expect(meant.length).toBeGreaterThan(40)
  })

  test('says of each what it means and what to do', async () => {
    for (const [code, cells] of rowsOf((await readPage('docs/reference/errors.md')).text)) {
      expect(cells, code).toHaveLength(5)
      expect(
        cells.every((cell) => cell !== ''),
        code,
      ).toBe(true)
    }
  })
})

describe('what is exported', () => {
  let checker: ts.TypeChecker
  const modules: ts.Symbol[] = []

  beforeAll(async () => {
    await ensureBuilt()
    const doors = ['index', 'zookeeper/index'].map((name) => join(ROOT, `dist/${name}.d.ts`))
    const program = ts.createProgram(doors, {
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2023,
      lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
      types: ['node'],
      strict: true,
      skipLibCheck: true,
    })
    checker = program.getTypeChecker()
    for (const door of doors) {
      const file = program.getSourceFile(door)
      const module = file && checker.getSymbolAtLocation(file)
      if (module) modules.push(module)
    }
  })

  function exported(): ts.Symbol[] {
    const symbols = modules.flatMap((module) => checker.getExportsOfModule(module))
    return symbols.map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol))
  }

  /** The names of the properties of an exported interface. */
  function propertiesOf(name: string): string[] {
    const symbol = exported().find((each) => each.name === name)
    if (!symbol) throw new Error(`nothing that is exported is called ${name}`)
    return checker
      .getDeclaredTypeOfSymbol(symbol)
      .getProperties()
      .map((property) => property.name)
  }

  test('has a docstring', () => {
    const ours = exported().filter(({ declarations = [] }) =>
      declarations.every((each) => each.getSourceFile().fileName.startsWith(join(ROOT, 'dist'))),
    )
    expect(ours.length).toBeGreaterThan(150)
    const bare = ours.filter((symbol) => symbol.getDocumentationComment(checker).length === 0)
    expect(bare.map(({ name }) => name)).toEqual([])
  })

  test.each([
    ['Of a board', 'BoardEvents'],
    ['Of a conductor', 'ConductorEvents'],
    ['Of an engine', 'EngineEvents'],
    ['Of a ZooKeeper client', 'ClientEvents'],
  ])('the reference of events has all, %s, with what comes with them', async (heading, name) => {
    const rows = rowsOf(await sectionOf('docs/reference/events.md', heading))
    expect([...rows.keys()].sort()).toEqual(propertiesOf(name).sort())
    const symbol = exported().find((each) => each.name === name)
    const declared = symbol && checker.getDeclaredTypeOfSymbol(symbol).getProperties()
    for (const event of declared ?? []) {
      const carried = checker.getTypeOfSymbol(event).getProperties()
      const written = [...(rows.get(event.name)?.[1] ?? '').matchAll(/`(\w+)`/g)].map(([, field]) => field)
      expect(written.sort(), `${name}: ${event.name}`).toEqual(carried.map((field) => field.name).sort())
    }
  })

  test.each([
    ['`openBoard(uri, options)`', ['OpenBoardOptions']],
    ['`board.post(flow, store, options)`', ['PostOptions']],
    ['`board.jobs(options)`', ['JobsOptions']],
    ['`board.batch(options)`', ['BatchOptions']],
    ['`job.wait(options)`, `batch.wait(options)`, `board.wait(options)`', ['WaitOptions']],
    ['`board.claimNext(options)`', ['ClaimNextOptions']],
    ['`board.limits.list(options)` and `board.limits.show(key, options)`', ['LimitViewOptions']],
    ['`board.limits.take(key, options)`', ['TakeOptions']],
    ['`claim.abandon(options)`', ['AbandonOptions']],
    ['`claim.trash(options)`', ['TrashOptions']],
    ['`board.cancel(job, options)`', ['CancelOptions']],
    ['`board.release(job, options)`', ['ReleaseOptions']],
    ['`linear(options, …)`, `unordered(options, …)`, `graph(options, …)`', ['FlowOptions', 'GraphOptions']],
    ['`backOff(options)`', ['BackOffOptions']],
    ['`startConductor(options)` and `runConductor(options)`', ['ConductorOptions', 'RunConductorOptions']],
    ['`openPersistence(uri, options)`', ['OpenPersistenceOptions']],
    ['`openPersistenceOver(driver, options)`', ['DriverPersistenceOptions']],
    ['`track(uuid, options)`', ['TrackOptions']],
    ['`waitForJob(uuid, options)`', ['WaitForJobOptions']],
    ['`persistence.listBooks(query)`', ['BookQuery']],
    ['`runFlow(flow, store, options)`', ['RunFlowOptions']],
    ['`new Engine(options)`', ['EngineOptions']],
    ['`new ZooKeeper(options)`', ['ZooKeeperOptions']],
  ])('the reference of options has all of %s', async (heading, names) => {
    const [, table = ''] = (await sectionOf('docs/reference/options.md', heading)).split('| option |')
    const written = [...rowsOf(table.split('\n\n')[0] ?? '').keys()]
    expect(written.sort()).toEqual([...new Set(names.flatMap(propertiesOf))].sort())
  })
})
