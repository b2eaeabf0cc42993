/** `jobboard init`: what it writes and what it refuses. `test/package/init.test.ts` installs such a project and runs it. */
import { execFile } from 'node:child_process'
import { lstat, mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../support/build.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, killRemaining } from './workplace.ts'

const FILES = [
  ...['.dockerignore', '.gitignore', 'Dockerfile', 'README.md', 'flows.js', 'flows.test.js', 'jobboard.yaml'],
  ...['my-jobs.service', 'package.json'],
]

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder({ tsx: true })
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

const read = (name: string) => readFile(join(place.cwd, name), 'utf8')

interface Manifest {
  readonly name: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly scripts: Readonly<Record<string, string>>
}

const manifestOf = async (folder: string) => JSON.parse(await read(`${folder}/package.json`)) as Manifest

test('writes a project into a new folder, and prints what to do next', async () => {
  const { exitCode, stdout, stderr } = await place.bare(['init', 'work/my-jobs'])
  expect([exitCode, stderr]).toEqual([0, ''])
  expect((await readdir(join(place.cwd, 'work/my-jobs'))).sort()).toEqual(FILES)
  expect(stdout).toMatch(/^my-jobs: wrote package\.json, .*\nNext:\n {2}cd work\/my-jobs\n {2}npm install\n/)
  const { name, dependencies, scripts } = await manifestOf('work/my-jobs')
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  const { jobboard, ...driver } = dependencies
  expect({ name, jobboard }).toEqual({ name: 'my-jobs', jobboard: `^${version}` })
  // Newer releases of Node.js have SQLite.
  const hasSqlite = process.getBuiltinModule('node:sqlite') !== undefined
  expect(Object.keys(driver)).toEqual(hasSqlite ? [] : ['@photostructure/sqlite'])
  for (const script of ['start', 'test', 'dev']) expect(scripts).toHaveProperty(script)
  expect(parse(await read('work/my-jobs/jobboard.yaml'))).toMatchObject({
    board: 'sqlite:./.jobboard/jobs.db',
    persistence: 'sqlite:./.jobboard/jobs.db',
    flows: './flows.js',
  })
})

test('leaves no placeholder, in any of its forms', async () => {
  await place.bare(['init', 'plain'])
  await place.bare(['init', 'typed', '--typescript', '--board', 'postgres://jobs@db.example.com/jobs?board=mail'])
  for (const folder of ['plain', 'typed'])
    for (const file of await readdir(join(place.cwd, folder)))
      expect(await read(`${folder}/${file}`)).not.toMatch(/__[A-Z]+__|undefined/)
})

test('the README has five commands, and they are those that the command prints', async () => {
  const { stdout } = await place.bare(['init', 'my-jobs'])
  const [, block = ''] = /```sh\n([\s\S]*?)```/.exec(await read('my-jobs/README.md')) ?? []
  const commands = (text: string) => [...text.matchAll(/^ *(np[mx] .*?)(?: +#.*)?$/gm)].map(([, line]) => line)
  expect(commands(block)).toHaveLength(5)
  expect(commands(stdout)).toEqual(commands(block))
})

test('a board in Postgres brings its driver, and has the logbooks beside it', async () => {
  await place.bare(['init', 'my-jobs', '--board', 'postgres://jobs@db.example.com/jobs?board=mail&sslmode=verify-full'])
  const { dependencies, scripts } = await manifestOf('my-jobs')
  expect(Object.keys(dependencies)).toEqual(['jobboard', 'pg'])
  expect(scripts).not.toHaveProperty('dev')
  expect(parse(await read('my-jobs/jobboard.yaml'))).toMatchObject({
    board: 'postgres://jobs@db.example.com/jobs?board=mail&sslmode=verify-full',
    persistence: 'postgres://jobs@db.example.com/jobs?sslmode=verify-full',
  })
  expect(await read('my-jobs/my-jobs.service')).not.toContain('directory:')
})

test('a board on a ZooKeeper of this machine has a command that runs one', async () => {
  await place.bare(['init', 'my-jobs', '--board', 'zookeeper://127.0.0.1:2181/my-jobs'])
  expect((await manifestOf('my-jobs')).scripts).toMatchObject({ dev: 'jobboard dev --zookeeper --port 2181' })
  expect(parse(await read('my-jobs/jobboard.yaml'))).toMatchObject({ persistence: 'directory:./logbooks' })
})

test('a scope of the name is for npm alone', async () => {
  await place.bare(['init', 'my-jobs', '--name', '@acme/mail'])
  expect((await manifestOf('my-jobs')).name).toBe('@acme/mail')
  expect(parse(await read('my-jobs/jobboard.yaml'))).toMatchObject({ board: 'sqlite:./.jobboard/jobs.db' })
  expect(await readdir(join(place.cwd, 'my-jobs'))).toContain('mail.service')
})

variant('in TypeScript it compiles, its test passes, and its flow runs', async () => {
  await place.bare(['init', '.', '--name', 'typed', '--typescript'])
  await mkdir(join(place.cwd, 'node_modules/@types'))
  for (const name of ['typescript', '@types/node'])
    await symlink(join(ROOT, 'node_modules', name), join(place.cwd, 'node_modules', name))
  const env = { ...process.env, PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}` }
  const { stdout } = await promisify(execFile)('npm', ['test'], { cwd: place.cwd, env })
  expect(stdout).toMatch(/ pass 2$/m)
  const ran = await place.bare(['run', 'hello', '--alone', '--store', '{"name":"Ada"}', '--json'])
  expect(JSON.parse(ran.stdout)).toMatchObject({ state: 'SUCCESS', results: { text: 'Hello, Ada!' } })
})

describe('never overwrites', () => {
  test('files that are in the way: it names them, and writes nothing', async () => {
    await place.write('my-jobs/package.json', '{}')
    await place.write('my-jobs/flows.js', '// mine')
    await place.write('my-jobs/notes.txt', 'mine')
    const { exitCode, stderr } = await place.bare(['init', 'my-jobs'])
    expect(exitCode).toBe(2)
    expect(stderr).toBe(
      `jobboard: in ${place.cwd}/my-jobs, package.json, flows.js exist, and nothing was written: name another folder, as in jobboard init my-jobs, or replace them with --force\n`,
    )
    expect((await readdir(join(place.cwd, 'my-jobs'))).sort()).toEqual(['flows.js', 'notes.txt', 'package.json'])
    expect(await read('my-jobs/flows.js')).toBe('// mine')
  })

  test('a folder with other files is no obstacle', async () => {
    await place.write('my-jobs/notes.txt', 'mine')
    expect(await place.bare(['init', 'my-jobs'])).toMatchObject({ exitCode: 0 })
    expect(await read('my-jobs/notes.txt')).toBe('mine')
  })

  test('--force replaces a symbolic link, and not the file that it leads to', async () => {
    await place.write('precious.js', '// mine')
    await mkdir(join(place.cwd, 'my-jobs'))
    await symlink('../precious.js', join(place.cwd, 'my-jobs/flows.js'))
    // A link that leads nowhere is in the way, too.
    await symlink('../nowhere', join(place.cwd, 'my-jobs/Dockerfile'))
    const refused = await place.bare(['init', 'my-jobs'])
    expect(refused.stderr).toContain('flows.js, Dockerfile exist')
    expect(await place.bare(['init', 'my-jobs', '--force'])).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await read('precious.js')).toBe('// mine')
    expect((await lstat(join(place.cwd, 'my-jobs/flows.js'))).isFile()).toBe(true)
  })
})

describe('one line for', () => {
  const refusal = async (...args: readonly string[]) => {
    const { exitCode, stdout, stderr } = await place.bare(['init', ...args])
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^jobboard: [^\n]+\n$/)
    return { exitCode, stderr }
  }

  test.each([
    ['My Jobs', 'other characters than a-z, 0-9'],
    ['.jobs', 'other characters than a-z, 0-9'],
    ['@Acme/jobs', 'other characters than a-z, 0-9'],
    ['jobboard', 'npm does not take it'],
    ['node_modules', 'npm does not take it'],
    ['', 'other characters than a-z, 0-9'],
  ])('a name that is not one of a package: %j', async (name, why) => {
    const { exitCode, stderr } = await refusal('folder', '--name', name)
    expect(exitCode).toBe(2)
    expect(stderr).toContain(`${JSON.stringify(name)} cannot be the name of the project's package`)
    expect(stderr).toContain(why)
    expect(await readdir(place.cwd)).not.toContain('folder')
  })

  test('a folder whose name is not one of a package', async () => {
    expect((await refusal('My Jobs')).stderr).toMatch(/"My Jobs" cannot be .*; give another, as in --name my-jobs/)
  })

  test.each([
    ['memory:', 'a project needs a board that several processes share'],
    ['mysql://db/jobs', 'a project needs a board that several processes share'],
    ['here', 'is not a URI'],
    ['postgres://jobs:hunter2@db/jobs?board=mail', 'leave the password out'],
  ])('the board %s', async (board, why) => {
    const { exitCode, stderr } = await refusal('my-jobs', '--board', board)
    expect(exitCode).toBe(2)
    expect(stderr).toContain(why)
    expect(stderr).not.toContain('hunter2')
    expect(await readdir(place.cwd)).not.toContain('my-jobs')
  })

  test('a folder that is a file, or is below one', async () => {
    await place.write('taken', '')
    expect(await refusal('taken')).toEqual({
      exitCode: 2,
      stderr: `jobboard: ${place.cwd}/taken is a file; name a folder for the project\n`,
    })
    expect((await refusal('taken/below')).stderr).toContain('ENOTDIR')
  })

  test('a folder in the place of a file', async () => {
    await mkdir(join(place.cwd, 'my-jobs/flows.js'), { recursive: true })
    expect((await refusal('my-jobs', '--force')).stderr).toContain('my-jobs/flows.js is a folder')
    expect(await readdir(join(place.cwd, 'my-jobs'))).toEqual(['flows.js'])
  })

  test('a place where nothing can be written', async () => {
    // Not even root can write there.
    expect(await refusal('/proc/my-jobs')).toEqual({
      exitCode: 1,
      stderr: 'jobboard: cannot write /proc/my-jobs: ENOENT; name a folder that you can write to\n',
    })
    expect((await refusal('/proc')).stderr).toMatch(
      /cannot write \/proc\/package\.json: (ENOENT|EACCES); name a folder/,
    )
  })
})

test('of two at the same time, one writes', async () => {
  const both = await Promise.all([place.bare(['init', 'my-jobs']), place.bare(['init', 'my-jobs'])])
  expect(both.map(({ exitCode }) => exitCode).sort()).toEqual([0, expect.any(Number)])
  expect((await readdir(join(place.cwd, 'my-jobs'))).sort()).toEqual(FILES)
})

test('the image of a project runs no install script of a package, and has no native code of ours', async () => {
  const file = await readFile(join(ROOT, 'templates/project/Dockerfile'), 'utf8')
  for (const line of file.split('\n').filter((each) => /npm (ci|install)/.test(each) && !each.startsWith('#')))
    expect(line).toContain('--ignore-scripts')
  expect(file).toContain('rm -rf node_modules/msgpackr-extract')
})
