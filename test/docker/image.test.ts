/**
 * The image of conductors, as far as that goes without an engine: its Dockerfile makes sense, what it starts starts, and is
 * healthy. `npm run test:long -- docker` takes its steps by hand, too.
 */
import { execFile } from 'node:child_process'
import { access, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openBoard } from 'jobboard'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type CliFolder, createCliFolder, type Outcome } from '../cli/workplace.ts'
import { ROOT } from '../support/build.ts'
import { count } from '../support/counts.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { freePort } from '../support/ports.ts'
import { copyOf, execForm, type Instruction, type Stage, stagesOf, takeSteps } from './dockerfile.ts'

const DOCKERFILE = await readFile(join(ROOT, 'docker/Dockerfile'), 'utf8')
const STAGES = stagesOf(DOCKERFILE)
const IMAGE = STAGES.at(-1)

function last(name: string, stage: Stage | undefined = IMAGE): Instruction {
  const found = stage?.instructions.findLast((instruction) => instruction.name === name)
  if (!found) throw new Error(`there is no ${name}`)
  return found
}

describe('the Dockerfile', () => {
  test('copies what there is, and what is not kept from it', async () => {
    const ignored = (await readFile(join(ROOT, '.dockerignore'), 'utf8')).split('\n')
    const copies = STAGES.flatMap(({ instructions }) => instructions.filter(({ name }) => name === 'COPY').map(copyOf))
    const taken = copies.filter(({ from }) => from === undefined).flatMap(({ sources }) => sources)
    expect(taken.length).toBeGreaterThan(4)
    await Promise.all(taken.map((source) => access(join(ROOT, source))))
    // Everything is kept out that is not named, and nothing is named in vain.
    expect(ignored).toContain('*')
    const letIn = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
    expect(letIn.sort()).toEqual(taken.sort())
    const stages = STAGES.map(({ name }) => name)
    for (const { from } of copies) if (from !== undefined) expect(stages.slice(0, -1)).toContain(from)
  })

  test('starts it without a shell, as a user who is not root, and says how to ask for its health', () => {
    expect(last('USER').text).toBe('node')
    expect(execForm(last('ENTRYPOINT'))[0]).toBe('node')
    expect(execForm(last('CMD'))[0]).toBe('conductor')
    expect(execForm(last('HEALTHCHECK'))).toEqual(['node', 'healthcheck.mjs'])
    expect(last('HEALTHCHECK').text).not.toContain('curl')
  })

  test('is made of small images of a Node that is supported, and of the drivers that the package asks for', async () => {
    for (const { image } of STAGES) expect(image).toMatch(/^node:\$\{NODE\}-slim$/)
    const [, node] = /^ARG NODE=(\d+)$/m.exec(DOCKERFILE) ?? []
    expect(Number(node)).toBeGreaterThanOrEqual(20)
    // Peers are ranges; the image has the versions that the tests run with.
    const { devDependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      devDependencies: Record<string, string>
    }
    expect(DOCKERFILE).toContain(`dependencies.pg=${devDependencies['pg']} `)
    expect(DOCKERFILE).toContain(`dependencies.ioredis=${devDependencies['ioredis']}\n`)
  })

  test('leaves out native code that would decode what others have written', () => {
    const [build] = STAGES
    const runs = build?.instructions.filter(({ name }) => name === 'RUN').map(({ text }) => text) ?? []
    const removal = runs.findIndex((text) => text.startsWith('rm -rf '))
    expect(runs[removal]).toBe('rm -rf node_modules/msgpackr-extract node_modules/@msgpackr-extract')
    // What comes later could install it once more.
    expect(runs.findLastIndex((text) => text.startsWith('npm'))).toBeLessThan(removal)
  })

  test.each(['a shell', 'no instruction'])('%s would be found', (what) => {
    const wrong = what === 'a shell' ? 'FROM node\nCMD node main.js' : 'FROM node\nnode main.js'
    expect(() => stagesOf(wrong).map((stage) => execForm(last('CMD', stage)))).toThrow(what)
  })
})

// Where there is no ZooKeeper the run says so: see JOBBOARD_SKIP.
describe.skipIf(!zookeeperHosts)('what it starts', () => {
  let place: CliFolder
  let port: number

  beforeAll(async () => {
    place = await createCliFolder()
    for (const name of ['healthcheck.mjs', 'flows/flows.js', 'flows/package.json'])
      await place.write(name, await readFile(join(ROOT, 'docker', name), 'utf8'))
    port = await freePort()
  })
  afterAll(() => place?.[Symbol.asyncDispose]())

  const healthcheck = async (): Promise<Pick<Outcome, 'exitCode' | 'stdout'>> => {
    const env = { ...process.env, JOBBOARD_HEALTH_PORT: String(port) }
    const [program = '', ...args] = execForm(last('HEALTHCHECK'))
    return promisify(execFile)(program, args, { cwd: place.cwd, env }).then(
      ({ stdout }) => ({ exitCode: 0, stdout }),
      ({ code, stdout }: { code: number; stdout: string }) => ({ exitCode: code, stdout }),
    )
  }

  test('is healthy, does what the page about it says, and ends when it is asked to', async () => {
    const conductor = place.start(execForm(last('CMD')).map((arg) => arg.replace('8080', String(port))))
    onTestFinished(() => void conductor.process.kill('SIGKILL'))
    await conductor.says('health at')
    expect(await healthcheck()).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('"state":"idle"') })

    const [post = [], conductors = []] = await commandsOfThePage()
    expect([post[0], conductors[0]]).toEqual(['post', 'conductors'])
    const posted = await place.jobboard(post)
    expect(posted).toMatchObject({ exitCode: 0, stderr: '' })
    await using board = await openBoard(place.board)
    const job = await board.find(posted.stdout.trim()).catch(() => undefined)
    // Where it is not on the board any more it is done.
    if (job) expect(await job.wait()).toBe('COMPLETE')
    expect((await place.jobboard(conductors)).stdout).toContain('hello')

    conductor.process.kill('SIGTERM')
    const { exitCode, stderr } = await conductor.ended
    expect(exitCode).toBe(0)
    expect(stderr).toContain('Hello, Ada!')
    expect(await healthcheck()).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('ECONNREFUSED') })
  })
})

/** The arguments of what the page has one run in a container. */
async function commandsOfThePage(): Promise<string[][]> {
  const page = await readFile(join(ROOT, 'docker/README.md'), 'utf8')
  const lines = [...page.matchAll(/^docker compose run --rm conductor (.*?)(?: +#.*)?$/gm)].map(([, line = '']) => line)
  return lines.map((line) => [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? ''))
}

const times = count({ test: 0, long: 1 })
test.each(Array.from({ length: times }, () => ROOT))(
  'its steps lead to a command with its drivers',
  async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-image-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const roots = await takeSteps(STAGES, { context, folder })
    const app = join(roots.get('') ?? '', 'app')
    const run = async (...args: string[]) => (await promisify(execFile)('node', args, { cwd: app })).stdout
    expect(await run(...execForm(last('ENTRYPOINT')).slice(1), '--version')).toMatch(/^\d+\.\d+\.\d+/)
    const load = (name: string) => run('--input-type=module', '--eval', `await import('${name}')`)
    for (const name of ['pg', 'ioredis', 'jobboard', 'jobboard/testing']) await load(name)
    await expect(load('typescript')).rejects.toThrow('ERR_MODULE_NOT_FOUND')
    const files = await readdir(join(app, 'node_modules'), { recursive: true })
    expect(files.filter((file) => file.endsWith('.node'))).toEqual([])
  },
)
