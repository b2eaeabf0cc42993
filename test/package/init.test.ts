/** A project of `jobboard init`, from the packed package: it is installed, its test passes, and its conductor runs a job. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { openBoard } from 'jobboard'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { copyOf, execForm, stagesOf } from '../docker/dockerfile.ts'
import { MAIN } from '../support/build.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { freePort } from '../support/ports.ts'
import { type InstalledPackage, installPackage, type Packed, pack } from './packed.ts'

let packed: Packed
let user: InstalledPackage
let project: string
const board = `zookeeper://${zookeeperHosts}${namespace('init')}`

beforeAll(async () => {
  packed = await pack()
  // The release that its package.json names is this one, which is not published yet: it is installed from the tarball.
  const begin = `'${process.execPath}' '${MAIN}' init --name my-jobs --board '${board}'`
  user = await installPackage(packed.tarball, { begin })
  project = user.folder
  // On a busy machine, the build and the installation of all dependencies take minutes.
}, 300_000)
afterAll(async () => {
  await user?.[Symbol.asyncDispose]()
  await packed?.[Symbol.asyncDispose]()
})

test('the packed package writes the same', async () => {
  await user.run(`node_modules/.bin/jobboard init again --name my-jobs --board '${board}'`)
  for (const file of await readdir(join(project, 'again')))
    if (file !== 'package.json')
      expect(await readFile(join(project, 'again', file))).toEqual(await readFile(join(project, file)))
})

test('its test passes', async () => {
  expect(await user.run('npm test')).toMatch(/ pass 2$/m)
})

/** Starts a program in a process group of its own, which Ctrl-C in a terminal would reach as a whole. */
function start(command: readonly string[], { cwd = project, env = {} } = {}) {
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = (signal: NodeJS.Signals) => process.kill(-(child.pid ?? Number.NaN), signal)
  const ended = once(child, 'close')
  onTestFinished(() => void (child.exitCode ?? child.signalCode ?? kill('SIGKILL')))
  const lines: string[] = []
  const says = (words: string) =>
    new Promise<void>((resolve, reject) => {
      for (const input of [child.stdout, child.stderr]) {
        createInterface({ input }).on('line', (line) => {
          lines.push(line)
          if (line.includes(words)) resolve()
        })
      }
      ended.then(() => reject(new Error(`it ended: ${lines.join('\n')}`)), reject)
    })
  return { kill, ended, says, lines }
}

// Where there is no ZooKeeper the run says so: see JOBBOARD_SKIP.
describe.skipIf(!zookeeperHosts)('with its board', () => {
  test('npm start runs what is posted, and Ctrl-C ends it in order', async () => {
    const conductor = start(['npm', 'start'])
    await conductor.says('Ctrl-C stops it')
    const uuid = await user.run(`node_modules/.bin/jobboard post hello --store '{"name":"Ada"}'`)
    await user.run(`node_modules/.bin/jobboard wait ${uuid.trim()}`)
    expect(conductor.lines.filter((line) => line.includes('Hello, Ada!'))).toHaveLength(1)
    conductor.kill('SIGINT')
    await conductor.ended
    await using opened = await openBoard(board)
    expect(await opened.countJobs()).toBe(0)
    expect(await readdir(join(project, 'logbooks'))).not.toEqual([])
  })

  test('what its unit file starts runs until SIGTERM, with logbooks where it may write', async () => {
    const unit = await readFile(join(project, 'my-jobs.service'), 'utf8')
    const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
    const [, JOBBOARD_PERSISTENCE = ''] = /^Environment=JOBBOARD_PERSISTENCE=(.*)$/m.exec(unit) ?? []
    const state = join(user.folder, 'var/lib')
    const conductor = start(command.split(' '), {
      env: { JOBBOARD_PERSISTENCE: JOBBOARD_PERSISTENCE.replace('%S', state) },
    })
    await conductor.says(`logbooks in directory:${state}/my-jobs/logbooks`)
    conductor.kill('SIGTERM')
    expect(await conductor.ended).toEqual([0, null])
  })

  test('what its image starts is healthy, and stops at SIGTERM', async () => {
    const [build, image] = stagesOf(await readFile(join(project, 'Dockerfile'), 'utf8'))
    const last = (name: string) =>
      image?.instructions.findLast((instruction) => instruction.name === name) ?? { name, text: '' }
    const copies = [build, image].flatMap((stage) => stage?.instructions.filter(({ name }) => name === 'COPY') ?? [])
    const app = join(user.folder, 'app')
    await mkdir(app)
    await symlink(join(project, 'node_modules'), join(app, 'node_modules'))
    for (const { from, sources } of copies.map(copyOf)) {
      if (from !== undefined) continue
      // npm install has written the lock that it copies.
      for (const source of sources) await user.run(`cp ${source} app/`)
    }
    expect(last('USER').text).toBe('node')
    const port = String(await freePort())
    const onPort = (command: readonly string[]) => command.map((word) => word.replace('8080', port))
    const conductor = start(onPort([...execForm(last('ENTRYPOINT')), ...execForm(last('CMD'))]), {
      cwd: app,
      env: { JOBBOARD_PERSISTENCE: `directory:${join(user.folder, 'image-logbooks')}` },
    })
    await conductor.says('health at')
    const [program = '', ...args] = onPort(execForm(last('HEALTHCHECK')))
    await promisify(execFile)(program, args)
    conductor.kill('SIGTERM')
    expect(await conductor.ended).toEqual([0, null])
    await expect(promisify(execFile)(program, args)).rejects.toMatchObject({ code: 1 })
  })
})
