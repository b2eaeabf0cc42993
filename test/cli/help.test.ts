/** What `--help` says is what the reference says, and it is said quickly because nothing more is loaded for it. */
import { readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROOT } from '../support/build.ts'
import { type CliFolder, createCliFolder } from './workplace.ts'

const REFERENCE = join(ROOT, 'docs/reference/cli.md')
const COMMANDS = [
  'post',
  'jobs',
  'show',
  'track',
  'wait',
  'result',
  'cancel',
  'release',
  'run',
  'conductor',
  'conductors',
  'ui',
  'ui password',
  'info',
  'doctor',
  'exporter',
  'pause',
  'resume',
  'flows',
  'flows set',
  'flows unset',
  'flows list',
  'flows show',
  'schedule list',
  'schedule show',
  'schedule preview',
  'schedule add',
  'schedule edit',
  'schedule pause',
  'schedule resume',
  'schedule trigger',
  'schedule backfill',
  'schedule remove',
  'limits list',
  'limits show',
  'limits set',
  'limits stop',
  'limits resume',
  'limits remove',
  'batch create',
  'batch list',
  'batch show',
  'batch seal',
  'batch wait',
  'batch cancel',
  'batch retry',
  'trash list',
  'trash show',
  'trash restore',
  'trash purge',
  'history',
  'logbook list',
  'logbook show',
  'logbook destroy',
  'board copy',
  'sqlite check',
  'sqlite backup',
  'sqlite compact',
  'config show',
  'config check',
  'config schema',
  'init',
  'dev',
  'demo',
  'completion',
] as const

let place: CliFolder

beforeAll(async () => {
  place = await createCliFolder()
})
afterAll(async () => place[Symbol.asyncDispose]())

describe('the reference has the help of', () => {
  test.each(['', ...COMMANDS])('jobboard %s', async (command) => {
    const { exitCode, stdout, stderr } = await place.bare([...words(command), '--help'])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('\nExample')
    const reference = await readFile(REFERENCE, 'utf8')
    expect(reference).toContain(`\n\`\`\`text\n${stdout.trimEnd()}\n\`\`\`\n`)
  })
})

test('the reference has no other commands', async () => {
  const headings = [...(await readFile(REFERENCE, 'utf8')).matchAll(/^## `jobboard (.*)`$/gm)].map(([, name]) => name)
  expect(headings).toEqual(COMMANDS)
})

test('every command there is has its place there', async () => {
  const commandsOf = async (group: string) => {
    const { stdout } = await place.bare([...words(group), '--help'])
    const [, list = ''] = /\nCommands:\n(.*?)(?:\n\n|$)/s.exec(stdout) ?? []
    return [...list.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => name)
  }
  const found: string[] = []
  for (const name of await commandsOf('')) {
    const below = [
      'schedule',
      'limits',
      'batch',
      'trash',
      'logbook',
      'board',
      'sqlite',
      'config',
      'ui',
      'flows',
    ].includes(name)
      ? await commandsOf(name)
      : []
    // `ui` and `flows` are commands themselves, too.
    if (below.length === 0 || name === 'ui' || name === 'flows') found.push(name)
    found.push(...below.map((each) => `${name} ${each}`))
  }
  expect(found.filter((name) => !/\bhelp$/.test(name))).toEqual(COMMANDS)
})

test('lines of help fit 80 columns, but for examples', async () => {
  for (const command of ['', ...COMMANDS]) {
    const { stdout } = await place.bare([...words(command), '--help'])
    const [text = ''] = stdout.split(/^Examples?:$/m)
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([])
  }
})

test('--version', async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  expect(await place.bare(['--version'])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' })
})

test('boards, logbooks, conductors and drivers are loaded when they are used', async () => {
  const reached = await staticImports(join(ROOT, 'dist/cli/main.js'))
  const folders = new Set([...reached.files].map((file) => relative(join(ROOT, 'dist'), dirname(file)).split('/')[0]))
  // The views are plain functions, which need nothing more.
  expect([...folders].sort()).toEqual(['cli', 'core', 'views'])
  expect([...reached.packages].sort()).toEqual(['commander'])
})

test('the library loads what talks to servers when a place on them is opened', async () => {
  const foldersOf = (files: Iterable<string>) =>
    new Set([...files].map((file) => relative(join(ROOT, 'dist'), dirname(file))))
  const library = await staticImports(join(ROOT, 'dist/index.js'))
  const folders = [...foldersOf(library.files)]
  expect(folders.filter((folder) => /zookeeper|postgres|sql/.test(folder))).toEqual([])
  expect([...library.packages].sort()).toEqual(['msgpackr', 'pino', 'uuid'])
  const zookeeper = await staticImports(join(ROOT, 'dist/board/backends/zookeeper/index.js'))
  expect(foldersOf(zookeeper.files)).not.toContain('board/zookeeper/stepwise')
})

function words(command: string): string[] {
  return command === '' ? [] : command.split(' ')
}

/** What is loaded before the first line runs: types are gone from what was built. */
async function staticImports(main: string): Promise<{ files: Set<string>; packages: Set<string> }> {
  const files = new Set([main])
  const packages = new Set<string>()
  for (const file of files) {
    const code = await readFile(file, 'utf8')
    for (const [, name = ''] of code.matchAll(/^(?:import|export)\b(?:[^'"=(]*\bfrom)?\s*['"]([^'"]+)['"];$/gm)) {
      if (name.startsWith('.')) files.add(resolve(dirname(file), name))
      else if (!name.startsWith('node:')) packages.add(name)
    }
  }
  return { files, packages }
}
