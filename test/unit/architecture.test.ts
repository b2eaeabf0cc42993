/** The house stands: arrows between folders point down only, nothing goes in circles, drivers stay in their rooms. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const SOURCE = resolve(import.meta.dirname, '../../src')

/** Floors, from the ground up. Folders of one floor do not know each other. */
const FLOORS: readonly (readonly string[])[] = [
  ['core'],
  ['zookeeper', 'flow', 'pool', 'postgres'],
  ['board', 'persistence'],
  ['engine', 'schedule'],
  ['conductor'],
  ['cli', 'dashboard', 'testing'],
]

/** Rooms of the board that are no backends, from the ground up. */
const BOARD: readonly string[] = ['queue', 'view', 'claims']

/** Who may import which package of a driver. */
const DRIVERS: Readonly<Record<string, string>> = {
  pg: 'postgres/',
  ioredis: 'board/redis/',
  zookeeper: 'zookeeper/native.ts',
}

interface Import {
  readonly from: string
  readonly to: string
}

const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const imports = files.flatMap(importsOf)
const own = imports.filter(({ to }) => to.endsWith('.ts'))
const packages = imports.filter(({ to }) => !to.endsWith('.ts'))

test('there is something to check', () => {
  expect(files.length).toBeGreaterThan(50)
  expect(own.length).toBeGreaterThan(100)
})

test('every folder has a floor', () => {
  const folders = new Set(files.filter((file) => file.includes('/')).map(folderOf))
  const housed = FLOORS.flat()
  expect([...folders].filter((folder) => !housed.includes(folder))).toEqual([])
})

test('arrows point down, and not sideways', () => {
  const wrong = own.filter(({ from, to }) => {
    const [above, below] = [floorOf(from), floorOf(to)]
    return folderOf(from) !== folderOf(to) && above <= below
  })
  expect(wrong.map(arrow)).toEqual([])
})

test('folders are entered by their door', () => {
  const wrong = own.filter(({ from, to }) => {
    return folderOf(from) !== folderOf(to) && folderOf(to) !== 'core' && to !== `${folderOf(to)}/index.ts`
  })
  expect(wrong.map(arrow)).toEqual([])
})

test('backends do not know each other, nor what boards make of them', () => {
  const room = (file: string) => /^(board|persistence)\/[^/]+(?=\/)/.exec(file)?.[0]
  const inBoard = (file: string) => BOARD.includes(room(file)?.replace('board/', '') ?? '')
  const wrong = own.filter(({ from, to }) => {
    return room(from) && room(to) && room(from) !== room(to) && !inBoard(from)
  })
  expect(wrong.map(arrow)).toEqual([])
})

test('within the board arrows point down, too', () => {
  const floor = (file: string) => BOARD.findIndex((room) => file.startsWith(`board/${room}/`))
  const wrong = own.filter(({ from, to }) => floor(to) >= 0 && floor(from) >= 0 && floor(from) < floor(to))
  expect(wrong.map(arrow)).toEqual([])
})

test('nothing goes in circles', () => {
  expect(circles(own)).toEqual([])
})

describe('drivers', () => {
  for (const [driver, room] of Object.entries(DRIVERS)) {
    test(`${driver} is imported in ${room} only`, () => {
      const wrong = packages.filter(
        ({ from, to }) => (to === driver || to.startsWith(`${driver}/`)) && !from.startsWith(room),
      )
      expect(wrong.map(arrow)).toEqual([])
    })
  }
})

test('a circle would be found', () => {
  const circle = ['a', 'b', 'c'].map((name, index, all) => ({ from: name, to: all[(index + 1) % all.length] ?? '' }))
  expect(circles(circle)).toHaveLength(1)
})

/** As the compiler sees them: `import`, `export … from`, and what is loaded when it is used. */
function importsOf(file: string): Import[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(SOURCE, file), 'utf8'), true, true)
  return importedFiles.map(({ fileName: to }) => {
    return { from: file, to: to.startsWith('.') ? relative(SOURCE, resolve(SOURCE, dirname(file), to)) : to }
  })
}

function folderOf(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : ''
}

/** The public door stands on the roof. */
function floorOf(file: string): number {
  const floor = FLOORS.findIndex((folders) => folders.includes(folderOf(file)))
  return floor < 0 ? FLOORS.length : floor
}

function arrow({ from, to }: Import): string {
  return `${from} -> ${to}`
}

/** One way round each circle. */
function circles(arrows: readonly Import[]): string[] {
  const next = new Map<string, string[]>()
  for (const { from, to } of arrows) next.set(from, [...(next.get(from) ?? []), to])
  const done = new Set<string>()
  const found: string[] = []
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) found.push([...path.slice(path.indexOf(file)), file].join(' -> '))
    if (path.includes(file) || done.has(file)) return
    for (const to of next.get(file) ?? []) visit(to, [...path, file])
    done.add(file)
  }
  for (const file of next.keys()) visit(file, [])
  return found
}
