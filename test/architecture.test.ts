/** Checks the structure of `src/` by its imports: levels, doors, circles, drivers, and the size of folders. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const SOURCE = resolve(import.meta.dirname, '../src')
const MAX_FILES_PER_FOLDER = 22

/** A list of levels, the lowest first. Folders of one level do not import each other. */
type Levels = readonly (readonly string[])[]

/**
 * The folders of `src/`. A new one is added where it belongs.
 */
const LEVELS: Levels = [
  ['core'],
  ['flow', 'postgres', 'sqlite', 'zookeeper', 'pool', 'schedule', 'telemetry'],
  ['persistence', 'board'],
  ['engine'],
  ['conductor'],
  ['views'],
  ['testing', 'ui'],
  ['cli'],
]

/** Imports that the levels would allow and that must not be: the second folder is never imported from the first. */
const NEVER: readonly (readonly [from: string, to: string])[] = [
  ['engine', 'board'],
  ['cli', 'testing'],
  ['ui', 'testing'],
]

/** The levels within a folder. The empty name stands for the folder's own files. */
const INNER: Readonly<Record<string, Levels>> = {
  core: [[''], ['async', 'collections']],
  flow: [['atoms'], ['patterns'], ['compile'], ['drawing'], ['']],
  zookeeper: [['protocol'], ['connection'], ['session'], ['watches'], [''], ['recipes']],
  board: [
    ['model', 'contract'],
    ['backends', 'queue', 'records'],
    ['settings'],
    ['limits', 'schedules'],
    ['view'],
    ['jobs'],
    ['claims'],
    ['api'],
    ['copy'],
    [''],
  ],
  'board/backends/zookeeper': [['store'], ['commit'], ['parts', 'taskflow'], ['']],
  schedule: [['calendar'], ['']],
  persistence: [[''], ['codecs'], ['directory', 'memory', 'postgres', 'sqlite', 'zookeeper']],
  conductor: [['boards', 'claiming', 'services'], ['runs'], ['isolation'], [''], ['daemon']],
}

/** Folders of one level that import each other: the contract of the backends is written in terms of the model, which names what backends store. */
const MUTUAL: readonly string[] = ['board/model', 'board/contract']

/** Files that put a folder together: they import from every level of it. */
const ASSEMBLERS: readonly string[] = ['index.ts', 'internal.ts', 'open.ts', 'memory-place.ts']

/** The files by which a folder is entered: what users need, and what only other folders of this project need. */
const DOORS: readonly string[] = ['index.ts', 'internal.ts']

/** Folders that are entered by each of their files. */
const OPEN_FOLDERS: readonly string[] = ['core']

/** Folders that hold one backend each, with what a backend may import of the folder around it. */
const BACKENDS: Readonly<Record<string, (file: string) => boolean>> = {
  'board/backends': (file) => /^board\/(model(\/posting)?|backends|contract)\/[^/]+$/.test(file),
  persistence: (file) => /^persistence\/(codecs\/)?[^/]+$/.test(file) && !ASSEMBLERS.includes(basename(file)),
}

/** The files of `board/contract` that are no roles. */
const NO_ROLES: readonly string[] = ['index.ts', 'refusals.ts', 'sink.ts', 'unsupported.ts']

/** The roles that only some backends have. */
const OPTIONAL_ROLES: readonly string[] = ['sections.ts', 'caller-transactions.ts']

/** The folders that may import the package of a driver. */
const DRIVERS: Readonly<Record<string, string>> = {
  pg: 'postgres/',
  ioredis: 'board/backends/redis/',
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

test('every folder has a level, and every level has its folders', () => {
  const folders = new Set(files.filter((file) => file.includes('/')).map(topOf))
  expect([...folders].sort()).toEqual(LEVELS.flat().sort())
  for (const [folder, levels] of Object.entries(INNER)) {
    const inside = new Set(files.filter((file) => file.startsWith(`${folder}/`)).map((file) => partOf(folder, file)))
    expect([...inside].sort(), folder).toEqual(levels.flat().sort())
  }
})

describe('CONTRIBUTING.md', () => {
  const text = readFileSync(resolve(SOURCE, '../CONTRIBUTING.md'), 'utf8')

  test('has the levels in its table', () => {
    const rows = [...text.matchAll(/^\| \d \| (`[^|]*`) \|/gm)].map(([, names = '']) =>
      names.replaceAll('`', '').split(', '),
    )
    expect(rows).toEqual(LEVELS)
  })

  test('has every folder in its map', () => {
    const [, map = ''] = /^```text\nsrc\/\n(.*?)^```$/ms.exec(text) ?? []
    let parent = ''
    const folders = [...map.matchAll(/^( {2}| {4})([a-z]+)\/(?: |$)/gm)].map(([, indent, name = '']) => {
      if (indent === '    ') return `${parent}/${name}`
      parent = name
      return name
    })
    const found = readdirSync(SOURCE, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => relative(SOURCE, join(entry.parentPath, entry.name)))
      .filter((folder) => folder.split('/').length <= 2)
    expect(folders.sort()).toEqual(found.sort())
  })
})

test('a folder imports only from lower levels', () => {
  const wrong = own.filter(({ from, to }) => {
    const [importer, imported] = [topOf(from), topOf(to)]
    if (importer === imported) return false
    return levelOf(LEVELS, importer) <= levelOf(LEVELS, imported)
  })
  expect(wrong.map(arrow)).toEqual([])
})

test.each(NEVER)('%s imports nothing from %s', (from, to) => {
  const wrong = own.filter((each) => topOf(each.from) === from && topOf(each.to) === to)
  expect(wrong.map(arrow)).toEqual([])
})

describe.each(Object.entries(INNER))('within %s', (folder, levels) => {
  test('a folder imports only from lower levels', () => {
    const wrong = own.filter(({ from, to }) => {
      if (!from.startsWith(`${folder}/`) || !to.startsWith(`${folder}/`) || isAssembler(folder, from)) return false
      const [importer, imported] = [partOf(folder, from), partOf(folder, to)]
      if (importer === imported) return false
      if (MUTUAL.includes(join(folder, importer)) && MUTUAL.includes(join(folder, imported))) return false
      return levelOf(levels, importer) <= levelOf(levels, imported)
    })
    expect(wrong.map(arrow)).toEqual([])
  })
})

test('folders are entered by index.ts or internal.ts', () => {
  const wrong = own.filter(({ from, to }) => {
    const folder = topOf(to)
    if (topOf(from) === folder || OPEN_FOLDERS.includes(folder)) return false
    return !DOORS.some((door) => to === `${folder}/${door}`)
  })
  expect(wrong.map(arrow)).toEqual([])
})

test('what the backends of boards share is imported by backends only', () => {
  const wrong = own.filter(({ from, to }) => dirname(to) === 'board/backends' && !from.startsWith('board/backends/'))
  expect(wrong.map(arrow)).toEqual([])
})

describe.each(Object.entries(BACKENDS))('each backend in %s', (folder, mayImport) => {
  /** The backend that a file belongs to; undefined for files beside the backends. */
  const backendOf = (file: string): string | undefined => {
    if (!file.startsWith(`${folder}/`) || dirname(file) === folder) return undefined
    const name = file.slice(folder.length + 1).split('/')[0] ?? ''
    return name === 'codecs' ? undefined : name
  }

  test('is imported by its index.ts or internal.ts, from where boards and logbooks are opened', () => {
    const wrong = own.filter(({ from, to }) => {
      const backend = backendOf(to)
      if (backend === undefined || backend === backendOf(from)) return false
      const isDoor = DOORS.some((door) => to === `${folder}/${backend}/${door}`)
      return !isDoor || !isAssembler(topOf(to), from)
    })
    expect(wrong.map(arrow)).toEqual([])
  })

  test('knows neither the other backends nor what is built on backends', () => {
    const wrong = own.filter(({ from, to }) => {
      const backend = backendOf(from)
      if (backend === undefined || topOf(from) !== topOf(to) || backendOf(to) === backend) return false
      return !mayImport(to)
    })
    expect(wrong.map(arrow)).toEqual([])
  })
})

describe('the bookshelf: each backend of boards has the same roles in files of the same names', () => {
  const folder = 'board/backends'
  const backends = [
    ...new Set(files.filter((file) => file.startsWith(`${folder}/`)).map((file) => partOf(folder, file))),
  ]
    .filter((name) => name !== '')
    .sort()
  const roles = readdirSync(join(SOURCE, 'board/contract')).filter((file) => !NO_ROLES.includes(file))

  test('the backends are these', () => {
    expect(backends).toEqual(['memory', 'postgres', 'redis', 'sqlite', 'zookeeper'])
  })

  test.each(backends)('%s has a file for each role', (backend) => {
    const own = files.filter((file) => dirname(file) === `${folder}/${backend}`).map((file) => basename(file))
    expect(roles.filter((role) => !own.includes(role) && !OPTIONAL_ROLES.includes(role))).toEqual([])
  })

  test('no role of a backend uses another one: what they share is passed to them', () => {
    const isRole = (file: string) => dirname(dirname(file)) === folder && roles.includes(basename(file))
    const wrong = own.filter(({ from, to }) => isRole(from) && isRole(to) && !isTypeImport(from, to))
    expect(wrong.map(arrow)).toEqual([])
  })
})

test('there are no circles', () => {
  expect(circles(own)).toEqual([])
})

test('a circle would be found', () => {
  const circle = ['a', 'b', 'c'].map((name, index, all) => ({ from: name, to: all[(index + 1) % all.length] ?? '' }))
  expect(circles(circle)).toHaveLength(1)
})

describe('drivers', () => {
  for (const [driver, folder] of Object.entries(DRIVERS)) {
    test(`${driver} is imported in ${folder} only`, () => {
      const using = packages.filter(({ to }) => to === driver || to.startsWith(`${driver}/`))
      expect(using.length).toBeGreaterThan(0)
      expect(using.filter(({ from }) => !from.startsWith(folder)).map(arrow)).toEqual([])
    })
  }
})

test(`no folder has more than ${MAX_FILES_PER_FOLDER} files of its own`, () => {
  const sizes = new Map<string, number>()
  for (const file of files) sizes.set(dirname(file), (sizes.get(dirname(file)) ?? 0) + 1)
  expect([...sizes].filter(([, size]) => size > MAX_FILES_PER_FOLDER)).toEqual([])
})

/** Returns the imports of a file as the compiler sees them: `import`, `export … from`, and `import()`. */
function importsOf(file: string): Import[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(SOURCE, file), 'utf8'), true, true)
  return importedFiles.map(({ fileName: to }) => {
    return { from: file, to: to.startsWith('.') ? relative(SOURCE, resolve(SOURCE, dirname(file), to)) : to }
  })
}

/** Returns whether a file imports only types of another one. */
function isTypeImport(from: string, to: string): boolean {
  const text = readFileSync(join(SOURCE, from), 'utf8')
  const path = relative(dirname(from), to).replaceAll('.', '\\.')
  const [, type, names = ''] = new RegExp(`^import (type )?\\{([^}]*)\\} from '\\./${path}'`, 'm').exec(text) ?? []
  return type !== undefined || (names !== '' && names.split(',').every((name) => /^\s*(type |$)/.test(name)))
}

/** Returns the folder of `src/` that a file is in; the empty name for the public door, `src/index.ts`. */
function topOf(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : ''
}

/** Returns the part of a folder that a file is in: a subfolder, or the empty name for the folder's own files. */
function partOf(folder: string, file: string): string {
  const rest = file.slice(folder.length + 1)
  return rest.includes('/') ? rest.slice(0, rest.indexOf('/')) : ''
}

/** Returns the number of a level; what has none, the public door, is above all. */
function levelOf(levels: Levels, folder: string): number {
  const level = levels.findIndex((folders) => folders.includes(folder))
  return level < 0 ? levels.length : level
}

function isAssembler(folder: string, file: string): boolean {
  return dirname(file) === folder && ASSEMBLERS.includes(basename(file))
}

function arrow({ from, to }: Import): string {
  return `${from} -> ${to}`
}

/** Returns one way round each circle. */
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
