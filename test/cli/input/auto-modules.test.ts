/** `flows: auto`: the modules that the packages of a project name in their field `jobboard`. */
import { chmod, chown, mkdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { usual as test, variant } from '../../variant.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from '../workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** A module with a flow that needs nothing. */
const moduleOf = (flow: string, more = '') => `
import { input, linear, task } from 'jobboard'
console.log('${flow} was loaded')
export const flow = linear('${flow}', input(), task('nothing', { execute: async () => undefined }))
${more}`

const manifest = (value: object) => JSON.stringify({ type: 'module', ...value })

/** Writes a package into `node_modules`, with a module for each of its flows. */
async function install(name: string, value: object, flows: readonly string[] = []): Promise<void> {
  await place.write(`node_modules/${name}/package.json`, manifest({ name, ...value }))
  for (const flow of flows) await place.write(`node_modules/${name}/dist/${flow}.js`, moduleOf(flow))
}

const project = (value: object) => place.write('package.json', manifest(value))

/** Returns the flows whose modules a command loads, in this order. */
async function loaded(args: readonly string[], cwd = place.cwd): Promise<readonly string[]> {
  const env = { JOBBOARD_BOARD: `sqlite:${place.cwd}/jobs.db`, JOBBOARD_PERSISTENCE: place.persistence }
  const running = place.start(args, { env, folder: cwd.slice(place.cwd.length + 1) || '.' })
  const { exitCode, stdout, stderr } = await running.ended
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  return [...stdout.matchAll(/^(\S+) was loaded$/gm)].map(([, flow = '']) => flow)
}

/** A project that depends on packages of each form. */
async function writeProject(): Promise<void> {
  await project({
    name: 'shop',
    jobboard: './own.js',
    dependencies: { jobboard: '*', plain: '*', '@acme/mail': '*', events: '*' },
    optionalDependencies: { reports: '*', missing: '*' },
    devDependencies: { tests: '*' },
  })
  await place.write('own.js', moduleOf('own'))
  await install('plain', {}, ['plain'])
  await install('@acme/mail', { jobboard: './dist/mail.js', exports: { '.': './index.js' } }, ['mail'])
  // A package with the name of a module of Node.
  await install('events', { jobboard: { flows: ['./dist/events.js'] } }, ['events'])
  await install('reports', { jobboard: ['dist/daily.js', './dist/weekly.js'] }, ['daily', 'weekly'])
  await install('tests', { jobboard: './dist/tests.js' }, ['tests'])
}

test('a conductor runs the flows of the dependencies and of the project, and of no package for development', async () => {
  await writeProject()
  await place.write('jobboard.yaml', 'flows: auto\n')
  expect(await loaded(['conductor', '--burst'])).toEqual(['mail', 'events', 'daily', 'weekly', 'own'])
})

test('config show lists each module with its package', async () => {
  await writeProject()
  await place.write('extra.js', moduleOf('extra'))
  await place.write('jobboard.yaml', 'boards:\n  a: { uri: "memory:a", flows: auto }\nflows: [auto, ./extra.js]\n')
  const { stdout, exitCode } = await place.bare(['config', 'show'])
  expect({ exitCode, stdout: stdout.replaceAll(/ +$/gm, '') }).toMatchInlineSnapshot(`
    {
      "exitCode": 0,
      "stdout": "KEY               VALUE                                 FROM
    boards.a.uri      memory:a                              jobboard.yaml:2
    boards.a.flows    auto                                  jobboard.yaml:2
    boards.a.flows.0  node_modules/@acme/mail/dist/mail.js  package @acme/mail
    boards.a.flows.1  node_modules/events/dist/events.js    package events
    boards.a.flows.2  node_modules/reports/dist/daily.js    package reports
    boards.a.flows.3  node_modules/reports/dist/weekly.js   package reports
    boards.a.flows.4  own.js                                package shop
    flows.0           auto                                  jobboard.yaml:3
    flows.0.0         node_modules/@acme/mail/dist/mail.js  package @acme/mail
    flows.0.1         node_modules/events/dist/events.js    package events
    flows.0.2         node_modules/reports/dist/daily.js    package reports
    flows.0.3         node_modules/reports/dist/weekly.js   package reports
    flows.0.4         own.js                                package shop
    flows.1           ./extra.js                            jobboard.yaml:3
    ",
    }
  `)
  expect(jsonLines((await place.bare(['config', 'show', '--json'])).stdout)).toContainEqual({
    key: 'flows.0.0',
    value: 'node_modules/@acme/mail/dist/mail.js',
    origin: { kind: 'package', package: '@acme/mail' },
  })
})

variant('auto beside others: a file that has two names is loaded once, and its services with it', async () => {
  await project({ jobboard: './flows.js' })
  await place.write('flows.js', moduleOf('own', 'export const services = { db: 1 }'))
  await place.write('extra.js', moduleOf('extra', 'export const services = { mail: 1 }'))
  await place.write('jobboard.yaml', 'flows: [./extra.js, auto, ./flows.js]\n')
  expect(await loaded(['conductor', '--burst'])).toEqual(['extra', 'own'])
  expect(await place.bare(['config', 'check'])).toMatchObject({ exitCode: 0, stderr: '' })
})

variant(
  '--flows auto begins in the working directory, and a file in its own folder; packages may be above it',
  async () => {
    await install('near', { jobboard: './dist/near.js' }, ['near'])
    await install('far', { jobboard: './dist/far.js' }, ['far'])
    await project({ dependencies: { far: '*' } })
    await place.write('jobboard.yaml', 'flows: auto\n')
    await place.write('apps/web/package.json', manifest({ dependencies: { near: '*' } }))
    await mkdir(join(place.cwd, 'apps/web/src'))
    const below = join(place.cwd, 'apps/web/src')
    expect(await loaded(['post', 'far'], below)).toEqual(['far'])
    expect(await loaded(['post', 'near', '--flows', 'auto'], below)).toEqual(['near'])
    expect((await place.jobboard(['post', 'nearr', '--flows', 'auto'], { cwd: below })).stderr).toBe(
      'jobboard: module auto has no flow "nearr"; did you mean near?\n',
    )
    expect((await place.jobboard(['post', 'farr'], { cwd: below })).stderr).toBe(
      'jobboard: module auto has no flow "farr"; did you mean far?\n',
    )
  },
)

variant('a linked package of a workspace', async () => {
  await project({ dependencies: { lib: '*' } })
  await place.write('packages/lib/package.json', manifest({ name: 'lib', jobboard: './flows.js' }))
  await place.write('packages/lib/flows.js', moduleOf('lib'))
  await symlink('../packages/lib', join(place.cwd, 'node_modules/lib'))
  expect(await loaded(['conductor', '--burst', '--flows', 'auto'])).toEqual(['lib'])
})

variant('a package that is named can have several modules', async () => {
  await install('reports', { jobboard: ['dist/daily.js', './dist/weekly.js'] }, ['daily', 'weekly'])
  await install('mail', { jobboard: './dist/mail.js' }, ['mail'])
  expect(await loaded(['conductor', '--burst', '--flows', 'reports', '--flows', 'mail'])).toEqual([
    'daily',
    'weekly',
    'mail',
  ])
  await place.write('jobboard.yaml', 'hooks: reports\n')
  expect((await place.jobboard(['conductor', '--burst', '--flows', 'mail'])).stderr).toBe(
    'jobboard: package reports names several modules of flows: name the file of one module instead\n',
  )
})

describe('is one clear line', () => {
  const FORM =
    'in its package.json must be the path of a module in the package, as in "./dist/flows.js", or a list of paths'
  const NO_FIELD = 'has a field jobboard; add it, as in "jobboard": "./flows.js", or name the modules of flows'
  test.each<[what: string, field: unknown, says: string]>([
    ['a number', 7, `package mail: jobboard ${FORM}`],
    ['an empty list', [], `package mail: jobboard ${FORM}`],
    ['a list with a number', ['./dist/mail.js', 7], `package mail: jobboard ${FORM}`],
    ['null', null, `package mail: jobboard ${FORM}`],
    [
      'a file that is missing',
      './dist/gone.js',
      `package mail: jobboard ${FORM}; there is no file ./dist/gone.js: build the package, or correct the path`,
    ],
    [
      'a file of another package',
      '../plain/dist/plain.js',
      `package mail: jobboard ${FORM}; ../plain/dist/plain.js is outside of the package`,
    ],
    [
      'a misspelt key',
      { flow: './dist/mail.js' },
      'package mail: jobboard in its package.json has no flows: write the',
    ],
  ])('a field that is wrong: %s', async (_, field, says) => {
    await project({ dependencies: { mail: '*', plain: '*' } })
    await install('mail', { jobboard: field }, ['mail'])
    await install('plain', { jobboard: './dist/plain.js' }, ['plain'])
    await place.write('jobboard.yaml', 'timeout: 5s\nflows: auto\n')
    await isOneLine(says)
  })

  test('nothing is found', async () => {
    await project({ dependencies: { plain: '*' } })
    await install('plain', {}, ['plain'])
    await place.write('jobboard.yaml', 'timeout: 5s\nflows: auto\n')
    const where = join(place.cwd, 'package.json')
    await isOneLine(`flows: auto finds no modules: neither ${where} nor one of its dependencies ${NO_FIELD}`)
  })

  test('a dependency that is not installed', async () => {
    await project({ dependencies: { gone: '*' }, jobboard: './own.js' })
    await place.write('own.js', moduleOf('own'))
    await place.write('jobboard.yaml', 'timeout: 5s\nflows: auto\n')
    await isOneLine(`package gone is a dependency in ${place.cwd}/package.json and is not installed: run npm install`)
  })

  test('a package.json that is not JSON', async () => {
    await place.write('package.json', '{')
    await place.write('jobboard.yaml', 'timeout: 5s\nflows: auto\n')
    await isOneLine(`${place.cwd}/package.json is not a JSON object: correct it, or name the modules of flows`)
    await project({ dependencies: { mail: '*' } })
    await place.write('node_modules/mail/package.json', '[]')
    const file = `${place.cwd}/node_modules/mail/package.json`
    await isOneLine(`package mail: ${file} is not a JSON object: install the package again`)
  })

  test('there is no package.json', async () => {
    await place.write('jobboard.yaml', 'timeout: 5s\nflows: auto\n')
    await isOneLine(
      `flows: auto needs a package.json in ${place.cwd} or above it: add one, or name the modules of flows`,
    )
  })

  /** Checks what commands say: those that check the file name the place, too. */
  async function isOneLine(says: string): Promise<void> {
    for (const [args, where] of [
      [['config', 'check'], 'jobboard.yaml:2:1: '],
      [['conductor', '--burst'], 'jobboard.yaml:2:1: '],
      [['post', 'mail'], ''],
      [['config', 'show'], ''],
    ] as const) {
      const { exitCode, stderr } = await place.jobboard(args)
      const [line = '', ...others] = stderr.trimEnd().split('\n')
      expect({ args, exitCode, others }).toEqual({ args, exitCode: 2, others: [] })
      expect(line.startsWith(`jobboard: ${where}${says}`), `${args}: ${line}`).toBe(true)
    }
  }
})

test('several mistakes are several lines, and what is right is shown', async () => {
  await project({ dependencies: { one: '*', two: '*', three: '*' } })
  await install('one', { jobboard: 1 })
  await install('two', { jobboard: './dist/two.js' }, ['two'])
  await install('three', { jobboard: './gone.js' })
  await place.write('jobboard.yaml', 'flows: auto\n')
  const { stdout, stderr } = await place.bare(['config', 'show'])
  expect(stdout).toContain('node_modules/two/dist/two.js')
  expect(stderr.split('\n')).toHaveLength(3)
  expect((await place.bare(['config', 'check'])).stderr).toMatch(/:1:1: package one: .*\n.*:1:1: package three: .*\n$/)
})

test.runIf(process.getuid?.() === 0)(
  'a file that was found runs no package that others can change; who names auto has decided',
  async () => {
    await project({ dependencies: { mail: '*' } })
    await install('mail', { jobboard: './dist/mail.js' }, ['mail'])
    await place.write('jobboard.yaml', 'flows: auto\n')
    const post = ['post', 'mail']
    for (const file of ['package.json', 'node_modules/mail/package.json', 'node_modules/mail/dist/mail.js']) {
      const path = join(place.cwd, file)
      await chmod(path, 0o666)
      const { exitCode, stderr } = await place.jobboard(post)
      expect({ exitCode, stderr }).toEqual({
        exitCode: 2,
        stderr: `jobboard: ${path} can be written by other users: the module that jobboard.yaml names is not run; name it on the command line if you trust it\n`,
      })
      const checked = await place.jobboard(['config', 'check'])
      expect(checked).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(`:1:1: ${path} can be written by`) })
      expect(await place.jobboard(['config', 'check', '--config', 'jobboard.yaml'])).toMatchObject({ exitCode: 0 })
      expect(await place.jobboard([...post, '--flows', 'auto'])).toMatchObject({ exitCode: 0 })
      expect(await place.jobboard([...post, '--config', 'jobboard.yaml'])).toMatchObject({ exitCode: 0 })
      await chmod(path, 0o644)
      await chown(path, 65_534, 65_534)
      expect((await place.jobboard(post)).stderr).toContain(`${path} belongs to another user`)
      await chown(path, 0, 0)
    }
    expect(await place.jobboard(post)).toMatchObject({ exitCode: 0, stderr: '' })
  },
)

variant('a board of its own flows, and a variable for auto', async () => {
  await project({ dependencies: { mail: '*' } })
  await install('mail', { jobboard: './dist/mail.js' }, ['mail'])
  await place.write(
    'jobboard.yaml',
    `boards:\n  one: { uri: "sqlite:${place.cwd}/one.db", flows: auto }\nflows: ./no.js\n`,
  )
  expect(await loaded(['post', 'mail', '--board', 'one'])).toEqual(['mail'])
  await place.write('jobboard.yaml', `flows: \${MODULES:-auto}\n`)
  expect(await loaded(['post', 'mail'])).toEqual(['mail'])
  await rm(join(place.cwd, 'node_modules/mail'), { recursive: true })
  await rename(join(place.cwd, 'package.json'), join(place.cwd, 'other.json'))
  expect((await place.bare(['config', 'check'])).stderr).toContain(
    'jobboard.yaml:1:1: flows: auto needs a package.json',
  )
})
