/** Where flows come from: JavaScript and TypeScript, paths and packages, and what is said when there are none. */
import { chmod, cp, mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import { openBoard } from '../../../src/index.ts'
import { all } from '../../board/jobs.ts'
import { ROOT } from '../../support/build.ts'
import { usual as test, testRows, variant } from '../../variant.ts'
import { type CliFolder, createCliFolder, FLOWS, killRemaining } from '../workplace.ts'

afterAll(killRemaining)

const TYPED = `
import { input, linear, task } from 'jobboard'
import { words } from './words.ts'

interface Inputs { readonly name: string }
const greet = task('greet', { requires: ['name'], execute: async ({ name }: Inputs): Promise<string> => words + name })
export const hello = linear('hello', input<Inputs>(), greet)
`
const WORDS = `export const words: string = 'Hello, '\n`

const STORE = ['--store', '{"name":"Ada"}']

describe('JavaScript', () => {
  const commonJs = FLOWS.replace(/import (.*) from 'jobboard'/, "const $1 = require('jobboard')")
    .replace('export const hello =', 'exports.hello =')
    .replace('export default', 'exports.others =')
  const modules: readonly (readonly [what: string, module: string, file: string, content: string])[] = [
    ['a path', 'flows.mjs', 'flows.mjs', FLOWS],
    ['a path with a dot', './sub/flows.mjs', 'sub/flows.mjs', FLOWS],
    ['CommonJS', 'flows.cjs', 'flows.cjs', commonJs],
    ['a name that is no URL', 'my #1 flows?.mjs', 'my #1 flows?.mjs', FLOWS],
    ['a package', 'our-flows', 'node_modules/our-flows/index.mjs', FLOWS],
  ]
  test.each(modules)('%s', async (_, module, file, content) => {
    await using place = await createCliFolder()
    await place.write(file, content)
    await place.write('node_modules/our-flows/package.json', '{"name":"our-flows","exports":"./index.mjs"}')
    expect(await place.jobboard(['post', 'hello', '--flows', module, ...STORE])).toMatchObject({
      exitCode: 0,
      stderr: '',
    })
    expect(await place.jobboard(['post', 'refused', '--flows', module])).toMatchObject({ exitCode: 0, stderr: '' })
  })

  variant('CommonJS in a process that has not imported the library before', async () => {
    await using place = await createCliFolder()
    await place.write('flows.cjs', commonJs)
    const ran = await place.jobboard(['run', 'hello', '--alone', '--flows', './flows.cjs', ...STORE])
    expect(ran).toMatchObject({ exitCode: 0 })
  })

  variant('flows and errors of another copy of the library', async () => {
    await using place = await createCliFolder()
    const copy = join(place.cwd, 'app/node_modules/jobboard')
    await cp(join(ROOT, 'dist'), join(copy, 'dist'), { recursive: true })
    await cp(join(ROOT, 'package.json'), join(copy, 'package.json'))
    for (const name of ['@noble', 'msgpackr', 'pino', 'uuid']) {
      await symlink(join(ROOT, 'node_modules', name), join(place.cwd, 'app/node_modules', name))
    }
    await place.write('app/flows.mjs', FLOWS)
    await runs(place, 'app/flows.mjs', 'refused', 'TRASHED')
  })
})

describe('TypeScript', () => {
  testRows(
    [
      ['in a package of modules', '{"type":"module"}'],
      ['without a word about modules', '{}'],
    ],
    ([what]) => what === 'in a package of modules',
  )('%s', async (_, manifest) => {
    await using place = await createCliFolder({ tsx: true })
    await place.write('package.json', manifest)
    await place.write('flows.ts', TYPED)
    await place.write('words.ts', WORDS)
    expect((await place.jobboard(['post', 'hello', '--flows', './flows.ts'])).stderr).toBe(
      'jobboard: flow hello requires name: add it to --store\n',
    )
    await runs(place, 'flows.ts', 'hello', 'COMPLETE')
  })

  variant('with a codec in JavaScript that says nothing about modules', async () => {
    await using place = await createCliFolder({ tsx: true })
    await place.write('flows.ts', TYPED)
    await place.write('words.ts', WORDS)
    await place.write('codec.js', "export const codec = { name: 'same', encode: (b) => b, decode: (b) => b }\n")
    const { exitCode, stderr } = await place.spawned([
      'run',
      'hello',
      '--flows',
      'flows.ts',
      '--codec',
      'codec.js',
      ...STORE,
    ])
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.not.stringContaining('has no codec') })
  })

  describe('runs no tsx but one beside the module', () => {
    const EVIL = 'throw new Error("the tsx of somebody else was run")'
    const foreignTsx = async (place: CliFolder, folder: string) => {
      await place.write(`${folder}/node_modules/tsx/package.json`, '{"name":"tsx","exports":"./index.mjs"}')
      await place.write(`${folder}/node_modules/tsx/index.mjs`, EVIL)
      return join(place.cwd, folder, 'node_modules/tsx/index.mjs')
    }

    test('not one of the working directory', async () => {
      await using place = await createCliFolder()
      await foreignTsx(place, 'work')
      await place.write('home/flows.ts', TYPED)
      await place.write('home/words.ts', WORDS)
      await mkdir(join(place.cwd, 'home/node_modules'))
      for (const [name, to] of [
        ['jobboard', ROOT],
        ['tsx', join(ROOT, 'node_modules/tsx')],
      ] as const)
        await symlink(to, join(place.cwd, 'home/node_modules', name))
      const options = { cwd: join(place.cwd, 'work'), env: { JOBBOARD_BOARD: place.board } }
      const { stderr } = await place.bare(['post', 'hello', '--flows', '../home/flows.ts'], options)
      expect(stderr).toBe('jobboard: flow hello requires name: add it to --store\n')
    })

    test('not one that others can change, for a module that a found config file names', async () => {
      await using place = await createCliFolder()
      const tsx = await foreignTsx(place, 'home')
      await place.write('home/jobboard.yaml', 'flows: ./flows.ts\n')
      await place.write('home/flows.ts', TYPED)
      await chmod(tsx, 0o666)
      const { exitCode, stderr } = await place.bare(['run', 'hello', ...STORE], { cwd: join(place.cwd, 'home') })
      expect({ exitCode, stderr }).toEqual({
        exitCode: 2,
        stderr: expect.stringContaining(`${tsx} can be written by other users: the module that jobboard.yaml names`),
      })
    })
  })

  test('tsx is missing', async () => {
    await using place = await createCliFolder()
    await place.write('flows.ts', TYPED)
    expect(await place.jobboard(['conductor', '--flows', 'flows.ts'])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: `jobboard: module flows.ts is TypeScript, and tsx is not installed in ${place.cwd}; run npm install tsx there, or name the JavaScript\n`,
    })
  })
})

describe('services', () => {
  const module = (services: string) => `
import { appendFileSync } from 'node:fs'
import { input, linear, task } from 'jobboard'

const note = (text) => appendFileSync(new URL('notes', import.meta.url), text + '\\n')
const save = task('save', { provides: 'saved', execute: (_, { services }) => services.db.save() })
export const hello = linear('hello', input(), save)
export const services = ${services}
`
  const FACTORY = `() => {
  note('made')
  return { db: { save: () => 'in the database', [Symbol.asyncDispose]: async () => note('ended') } }
}`
  const notes = async (place: CliFolder) =>
    (await readFile(join(place.cwd, 'notes'), 'utf8').catch(() => '')).split('\n')

  test('of the module are what tasks find, made once by who runs flows, and ended; not made to post', async () => {
    await using place = await createCliFolder()
    await place.write('flows.mjs', module(FACTORY))
    for (let posted = 0; posted < 2; posted++) {
      const { exitCode, stderr } = await place.jobboard(['post', 'hello', '--flows', 'flows.mjs'])
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    }
    expect(await notes(place)).toEqual([''])
    const conductor = ['conductor', '--flows', 'flows.mjs', '--max-jobs', '2', '--log-level', 'silent']
    expect(await place.jobboard(conductor)).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await notes(place)).toEqual(['made', 'ended', ''])
    await using board = await openBoard(place.board)
    expect([await board.countJobs(), (await all(board.trashed())).length]).toEqual([0, 0])

    const run = await place.jobboard(['run', 'hello', '--alone', '--flows', 'flows.mjs', '--quiet'])
    expect(run).toEqual({ exitCode: 0, stdout: 'saved  "in the database"\n', stderr: '' })
    expect(await notes(place)).toEqual(['made', 'ended', 'made', 'ended', ''])
  })

  test('that are an object are taken as it is; what is neither object nor function is refused before anything is claimed', async () => {
    await using place = await createCliFolder()
    await place.write('object.mjs', module(`{ db: { save: () => 'by an object' } }`))
    const run = ['run', 'hello', '--alone', '--quiet', '--flows']
    expect((await place.jobboard([...run, 'object.mjs'])).stdout).toBe('saved  "by an object"\n')
    await place.write('text.mjs', module(`'db'`))
    for (const args of [
      [...run, 'text.mjs'],
      ['conductor', '--flows', 'text.mjs'],
    ]) {
      const says = 'jobboard: module text.mjs: services is "db"; export an object, or a function that makes one\n'
      expect(await place.jobboard(args)).toEqual({ exitCode: 2, stdout: '', stderr: says })
    }
  })

  test('that cannot be made end the conductor, and the job stays for others', async () => {
    await using place = await createCliFolder()
    await place.write('broken.mjs', module(`() => { throw new Error('no database there') }`))
    await place.jobboard(['post', 'hello'])
    const { exitCode, stderr } = await place.jobboard(['conductor', '--flows', 'broken.mjs', '--log-level', 'silent'])
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining('no database there')])
    await using board = await openBoard(place.board)
    expect((await all(board.jobs())).map(({ state, runs }) => [state, runs])).toEqual([['UNCLAIMED', 0]])
  })
})

describe('several modules', () => {
  const module = (flow: string, services: string, { version = '1.0' } = {}) => `
import { defineServices, input, linear, service, task } from 'jobboard'
const say = task('say', { provides: 'said', execute: (_, { services }) => Object.keys(services).sort().join(' ') })
export const flow = linear({ name: '${flow}', version: '${version}' }, input(), say)
export const services = ${services}
`
  const DEFINED = (name: string) => `defineServices({ ${name}: service(() => 1) })`

  test('are run by one conductor, and their tasks find the services of all', async () => {
    await using place = await createCliFolder()
    await place.write('one.mjs', module('first', DEFINED('db')))
    await place.write('two.mjs', module('second', '{ mailer: 2 }'))
    const both = ['--flows', 'one.mjs', '--flows', 'two.mjs']
    for (const flow of ['first', 'second'])
      expect(await place.jobboard(['run', flow, '--alone', ...both, '--quiet'])).toEqual({
        ...{ exitCode: 0, stderr: '', stdout: 'said  "db mailer"\n' },
      })
    const isolated = await place.jobboard(['run', 'second', '--alone', ...both, '--quiet', '--isolate'])
    expect(isolated).toEqual({ exitCode: 0, stderr: '', stdout: 'said  "db mailer"\n' })
    for (const flow of ['first', 'second']) await place.jobboard(['post', flow])
    const conductor = await place.jobboard(['conductor', ...both, '--max-jobs', '2', '--log-level', 'silent'])
    expect(conductor).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('runs first, second from') })
    const unknown = await place.jobboard(['run', 'frist', '--alone', ...both])
    expect(unknown).toMatchObject({
      exitCode: 2,
      stderr: 'jobboard: modules one.mjs, two.mjs have no flow "frist"; did you mean first?\n',
    })
  })

  test.each([
    [
      'a flow twice',
      [module('same', '{}'), module('same', '{}')],
      'modules one.mjs and two.mjs both define flow same in version 1.0; rename one, or give it another version',
    ],
    [
      'a service twice',
      [module('first', DEFINED('db')), module('second', '{ db: 2 }')],
      'module one.mjs and module two.mjs both export a service db; rename one, or let one import the other',
    ],
    [
      'services of a function',
      [module('first', '() => ({ db: 1 })'), module('second', '{ mailer: 2 }')],
      'module one.mjs exports services as a function, which cannot be merged with those of other modules: export defineServices(…)',
    ],
  ])('are refused with %s', async (_, [one = '', two = ''], says) => {
    await using place = await createCliFolder()
    await place.write('one.mjs', one)
    await place.write('two.mjs', two)
    for (const args of [['run', 'same', '--alone'], ['conductor']]) {
      const refused = await place.jobboard([...args, '--flows', 'one.mjs', '--flows', 'two.mjs'])
      expect(refused).toMatchObject({ stdout: '', stderr: `jobboard: ${says}\n` })
      expect(refused.exitCode).not.toBe(0)
    }
  })

  test('a flow that one exports again from the other, and two versions of one, are no conflict', async () => {
    await using place = await createCliFolder()
    await place.write('one.mjs', module('same', '{ db: 1 }'))
    await place.write('two.mjs', `export * from './one.mjs'\n`)
    await place.write('three.mjs', module('same', '{ mailer: 1 }', { version: '2.0' }))
    const all = ['one', 'two', 'three'].flatMap((name) => ['--flows', `${name}.mjs`])
    expect(await place.jobboard(['run', 'same', '--alone', '--quiet', ...all])).toMatchObject({
      ...{ exitCode: 0, stdout: 'said  "db mailer"\n' },
    })
  })
})

describe('hooks and onError', () => {
  const MODULE = `
import { input, linear, task } from 'jobboard'
export const flow = linear('fail', input(), task('fail', { execute: () => { throw new Error('enough') } }))
export const onError = (failure) => (console.log('asked about', failure.message), 'trash')
export const hooks = {
  beforeClaim: { name: 'migrate', once: 'release', run: () => console.log('migrated') },
  failed: ({ settled }) => console.log('failed:', settled),
}
`
  variant('of the module are those of the conductor; a hook for each release needs its name', async () => {
    await using place = await createCliFolder()
    await place.write('flows.mjs', MODULE)
    const args = ['conductor', '--flows', 'flows.mjs', '--max-jobs', '1', '--log-level', 'silent']
    expect(await place.jobboard(args)).toMatchObject({
      ...{ exitCode: 2, stderr: expect.stringContaining('name it with the option release') },
    })
    const steps = [
      ['2.1', ['migrated']],
      ['2.1', []],
      ['2.2', ['migrated']],
    ] as const
    for (const [release, migrations] of steps) {
      await place.jobboard(['post', 'fail'])
      const { stdout, exitCode } = await place.spawned([...args, '--release', release])
      const lines = stdout.split('\n').filter((line) => /^(asked|migrated|failed)/.test(line))
      expect(lines).toEqual([...migrations, 'asked about enough', 'failed: trashed'])
      expect(exitCode).toBe(0)
    }
  })

  test.each([
    ['hooks = 1', 'module flows.mjs: hooks must be an object, as in { settled: (event) => … }'],
    [
      'onError = 1',
      'module flows.mjs: onError must be a function of a failure and its run, or a list of such functions',
    ],
    ['hooks = { settle: () => 1 }', 'hooks has no option "settle"; did you mean'],
  ])('of a wrong type are refused: %s', async (given, says) => {
    await using place = await createCliFolder()
    await place.write('flows.mjs', `${FLOWS}\nexport const ${given}\n`)
    const refused = await place.jobboard(['conductor', '--flows', 'flows.mjs'])
    expect(refused).toMatchObject({ exitCode: 2, stdout: '', stderr: expect.stringContaining(says) })
  })
})

describe('a package that names its flows', () => {
  test.each([
    ['our-flows', '"./dist/flows.mjs"', ''],
    ['@us/flows', '"dist/flows.mjs"', ''],
    [
      'our-flows',
      '"./missing.mjs"',
      'package our-flows: jobboard.flows in its package.json must be the path of a module',
    ],
    [
      'our-flows',
      '"../../flows.mjs"',
      'package our-flows: jobboard.flows in its package.json must be the path of a module',
    ],
    ['our-flows', '7', 'package our-flows: jobboard.flows in its package.json must be the path of a module'],
  ])('%s: %s', async (name, flows, says) => {
    await using place = await createCliFolder()
    await place.write('flows.mjs', FLOWS)
    await place.write(`node_modules/${name}/dist/flows.mjs`, FLOWS)
    await place.write(`node_modules/${name}/package.json`, `{"name":"${name}","jobboard":{"flows":${flows}}}`)
    const posted = await place.jobboard(['post', 'hello', '--flows', name, ...STORE])
    expect(posted.stderr).toContain(says)
    expect(posted.exitCode).toBe(says === '' ? 0 : 2)
  })
})

describe('no flows', () => {
  const cases: readonly (readonly [module: string, content: string, exitCode: number, says: string])[] = [
    [
      'empty.mjs',
      'export const hello = { name: "hello" }',
      2,
      'module empty.mjs has no flows; export what linear() makes',
    ],
    ['missing.mjs', '', 2, 'module missing.mjs does not exist: no such file relative to '],
    ['no-such-package', '', 2, 'module no-such-package does not exist: no such file relative to '],
    ['folder', '', 2, 'folder is a folder; name the module in it, as in folder/flows.js'],
    ['broken.mjs', '\nexport const = 1', 1, '/broken.mjs:2: SyntaxError: '],
    [
      'imports-broken.mjs',
      'import "data:text/javascript,export const = 1"',
      1,
      'cannot be loaded: in a module that it imports: SyntaxError: ',
    ],
    ['throws.mjs', 'throw new Error("no\\npaper")', 1, 'module throws.mjs cannot be loaded: Error: no paper'],
    ['imports.mjs', 'import "./gone.mjs"', 1, 'module imports.mjs cannot be loaded: Error: Cannot find module '],
    ['endless.mjs', 'await new Promise(() => {})', 1, 'module endless.mjs never finishes loading: a top-level await'],
    [
      'rejects.mjs',
      'Promise.reject(new TypeError("late")); await new Promise(() => setInterval(() => {}, 1e6))',
      1,
      'TypeError: late',
    ],
  ]
  test.each(cases)('%s', async (module, content, exitCode, says) => {
    await using place = await createCliFolder()
    if (content) await place.write(module, content)
    await place.write('folder/file', '')
    // Of these two the end of the process, and what nobody catches in it, are the point.
    const run = ['endless.mjs', 'rejects.mjs'].includes(module) ? place.spawned : place.jobboard
    const outcome = await run(['conductor', '--flows', module])
    expect(outcome).toMatchObject({ exitCode, stdout: '' })
    expect(outcome.stderr).toMatch(/^jobboard: [^\n]+\n$/)
    expect(outcome.stderr).toContain(says)
  })
})

test('a module that leaves a timer behind does not keep a command alive', async () => {
  await using place = await createCliFolder()
  await place.write('flows.mjs', `${FLOWS}\nsetInterval(() => undefined, 1_000)`)
  expect((await place.jobboard(['post', 'hello', '--flows', 'flows.mjs', ...STORE])).exitCode).toBe(0)
})

async function runs(place: CliFolder, module: string, flow: string, end: 'COMPLETE' | 'TRASHED'): Promise<void> {
  const { stdout: uuid, stderr } = await place.jobboard(['post', flow, '--flows', module, ...STORE])
  expect(stderr).toBe('')
  await using board = await openBoard(place.board)
  const job = await board.find(uuid.trim())
  const conductor = place.start(['conductor', '--flows', module])
  expect(await job.wait()).toBe(end)
  conductor.process.kill('SIGTERM')
  expect((await conductor.ended).exitCode).toBe(0)
}
