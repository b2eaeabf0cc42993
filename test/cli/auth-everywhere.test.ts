/** Every command opens the boards of jobboard.yaml with the credentials of their entries, whether the file names one board or several. */
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { openBoard, openPersistence } from '../../src/index.ts'
import { ACL, type Acl, digestId, PERMISSION, ZooKeeper } from '../../src/zookeeper/index.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining, type Outcome } from './workplace.ts'

/** Each board belongs to another user. */
const OWNERS = { urgent: 'ada:hunter2', bulk: 'bob:hunter3' } as const
const authOf = (owner: string) => ({ auth: [{ scheme: 'digest', auth: owner }], acl: ACL.creatorAll })

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** Makes the boards, their logbooks, and the file that names both. Returns the uuid of a job that waits on `urgent`. */
async function makeBoards(): Promise<string> {
  const entries: string[] = []
  let uuid = ''
  for (const [name, owner] of Object.entries(OWNERS)) {
    const [uri, logbooks] = [`${place.board}-${name}`, `${place.board}-logbooks-${name}`]
    await using board = await openBoard(uri, authOf(owner))
    await using _persistence = await openPersistence(logbooks, authOf(owner))
    const { uuid: posted } = await board.post('hello', { name: 'Ada' }, { name: 'first' })
    if (name === 'urgent') uuid = posted
    entries.push(`  ${name}: { uri: '${uri}', auth: '${owner}', persistence: '${logbooks}' }`)
  }
  await place.write('jobboard.yaml', `board: [urgent, bulk]\nflows: ./flows.js\nboards:\n${entries.join('\n')}\n`)
  return uuid
}

/** Runs a command that serves until Ctrl-C, and presses it once the command has said where. */
async function served(args: readonly string[], look: (url: string) => Promise<void>): Promise<Outcome> {
  const stop = new AbortController()
  let looked: Promise<void> | undefined
  const heard = (text: string) => {
    const [url] = /http:\/\/[^\s"]+/.exec(text) ?? []
    if (url === undefined || looked !== undefined) return
    looked = look(url).finally(() => stop.abort())
    looked.catch(() => undefined)
  }
  const outcome = await place.bare(args, { interrupt: stop.signal, heard })
  await looked
  return outcome
}

/** The commands that take one board, with arguments that work on a new one. */
const OF_ONE_BOARD = (uuid: string): Readonly<Record<string, readonly string[]>> => ({
  jobs: [],
  show: [uuid],
  info: [],
  doctor: [],
  conductors: [],
  pause: [],
  resume: [],
  flows: [],
  schedule: ['list'],
  limits: ['set', 'flow/hello', '--concurrency', '5'],
  batch: ['list'],
  trash: ['list'],
  history: [],
  logbook: ['list'],
  post: ['hello', '--store', '{"name":"Bea"}'],
  run: ['hello', '--store', '{"name":"Bea"}'],
  conductor: ['--burst'],
  track: [uuid],
  wait: [uuid],
  result: [uuid],
  cancel: [uuid],
  release: [uuid],
})
/** They answer by their exit code how the job has ended, or what the job is not. */
const ANY_END = ['track', 'wait', 'result', 'cancel', 'release', 'doctor']
const OF_SEVERAL = ['ui', 'exporter']
/** They use no board of the file. */
const WITHOUT_BOARD = ['config', 'sqlite', 'board', 'init', 'dev', 'demo', 'completion', 'help']

describe('the credentials of the entries of jobboard.yaml', () => {
  test('are used by every command that takes one board', async () => {
    const uuid = await makeBoards()
    const { stdout } = await place.bare(['--help'])
    const [, commands = ''] = stdout.split('\nCommands:\n')
    const names = [...commands.matchAll(/^ {2}([a-z]+)/gm)].map(([, name = '']) => name)
    const tried = OF_ONE_BOARD(uuid)
    expect(Object.keys(tried).sort()).toEqual(
      names.filter((name) => ![...OF_SEVERAL, ...WITHOUT_BOARD].includes(name)).sort(),
    )
    for (const [name, args] of Object.entries(tried)) {
      const outcome = await place.bare([name, ...args, '--board', 'urgent', '--timeout', '5s'])
      expect({ name, ...outcome }).not.toMatchObject({ stderr: expect.stringMatching(/ACL|credentials/) })
      expect({ name, ...outcome }).not.toMatchObject({ stdout: expect.stringMatching(/ACL|does not let/) })
      if (!ANY_END.includes(name)) expect({ name, ...outcome }).toMatchObject({ exitCode: 0 })
    }
  })

  variant('are used by those that serve several boards', async () => {
    await makeBoards()
    const conductor = await place.bare(['conductor', '--burst', '--timeout', '5s'])
    expect(conductor).toMatchObject({ exitCode: 0 })
    const found: unknown[] = []
    const ui = await served(['ui', '--port', '0', '--auth', 'none', '--json', '--timeout', '5s'], async (url) => {
      const { boards } = (await (await fetch(`${url}api/v1/session`)).json()) as { boards: { name: string }[] }
      for (const { name: board } of boards)
        for (const path of ['overview', 'logbooks', 'doctor']) {
          const response = await fetch(`${url}api/v1/boards/${board}/${path}`)
          found.push([board.replace(/.*-/, ''), path, response.status])
          if (path === 'doctor') expect(await response.text()).not.toMatch(/"fault"/)
        }
    })
    expect(ui).toMatchObject({ exitCode: 0 })
    expect(found).toEqual(
      ['urgent', 'bulk'].flatMap((board) => ['overview', 'logbooks', 'doctor'].map((path) => [board, path, 200])),
    )
    const exporter = await served(['exporter', '--port', '0', '--timeout', '5s'], async (url) => {
      const up = async () => (await (await fetch(url.replace(/;$/, ''))).text()).match(/^jobboard_board_up\{.*\} 1$/gm)
      await expect.poll(up, { timeout: 30_000 }).toHaveLength(2)
    })
    expect(exporter).toMatchObject({ exitCode: 0 })
  })
})

describe('the doctor on a board with an ACL', () => {
  const OWNER = digestId('ada', 'hunter2')
  const READER = digestId('eve', 'reader')
  const env = (auth: string) => ({ env: { JOBBOARD_ZOOKEEPER_AUTH: auth } })

  async function setAcl(acl: readonly Acl[]): Promise<void> {
    await using board = await openBoard(place.board, authOf('ada:hunter2'))
    await board.close()
    await using zookeeper = new ZooKeeper({ hosts: zookeeperHosts, auth: [{ scheme: 'digest', auth: 'ada:hunter2' }] })
    await zookeeper.connect()
    await zookeeper.setACL(place.path, acl)
  }

  async function rights(auth: string) {
    const { exitCode, stdout } = await place.jobboard(['doctor', '--json', '--timeout', '3s'], env(auth))
    const found = jsonLines(stdout) as { about: string; severity: string; text: string; advice?: string }[]
    return { exitCode, found, rights: found.find(({ about }) => about === 'rights') }
  }

  test('finds all rights of the owner, by its digest', async () => {
    await setAcl([{ permissions: PERMISSION.ALL, ...OWNER }])
    const { exitCode, found, rights: own } = await rights('ada:hunter2')
    expect(own).toMatchObject({ severity: 'ok', text: expect.stringContaining('all rights') })
    expect(found.filter(({ severity }) => severity === 'error')).toEqual([])
    expect(exitCode).toBe(0)
    // The examination has left nothing behind.
    await using zookeeper = new ZooKeeper({ hosts: zookeeperHosts, auth: [{ scheme: 'digest', auth: 'ada:hunter2' }] })
    await zookeeper.connect()
    expect((await zookeeper.getChildren(place.path)).names.filter((name) => name.includes('doctor'))).toEqual([])
  })

  test('names what a reader may not do', async () => {
    await setAcl([
      { permissions: PERMISSION.ALL, ...OWNER },
      { permissions: PERMISSION.READ, ...READER },
    ])
    const { exitCode, rights: own } = await rights('eve:reader')
    expect(own).toMatchObject({
      severity: 'error',
      text: expect.stringMatching(/does not let this client write, create, delete$/),
      advice: expect.stringContaining('JOBBOARD_ZOOKEEPER_AUTH'),
    })
    expect(exitCode).toBe(1)
  })

  test('names everything for a client that has no right, or the wrong password of a user who has', async () => {
    await setAcl([{ permissions: PERMISSION.ALL, ...OWNER }])
    for (const auth of ['mallory:guess', 'ada:wrong']) {
      const { exitCode, rights: own } = await rights(auth)
      expect(own).toMatchObject({ severity: 'error', text: expect.stringContaining('read, write, create, delete') })
      expect(exitCode).toBe(1)
    }
  })
})
