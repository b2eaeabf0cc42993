/** The same mistakes with every command that can be given them: one line that says what to do, and the right exit code. */
import { chmod, mkdir } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type JobBoard, openBoard, openPersistence } from '../../../src/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { freePort } from '../../support/ports.ts'
import { type CliFolder, createCliFolder, FLOWS, type Outcome } from '../workplace.ts'

const UUID = '0199c0de-0000-7000-8000-000000000001'
const TWINS = ['0199aaaa-0000-7000-8000-000000000001', '0199aaaa-0000-7000-8000-000000000002'] as const

type Words = readonly string[]

/** All that open a board, with what they need beside it. */
const ON_BOARDS: readonly Words[] = [
  ['post', 'hello'],
  ['jobs'],
  ['show', UUID],
  ['track', UUID],
  ['wait', UUID],
  ['cancel', UUID],
  ['run', 'hello', '--flows', 'flows.js', '--store', '{"name":"Ada"}'],
  ['conductor', '--flows', 'flows.js', '--log-level', 'silent', '--burst'],
  ['conductors'],
  ['info'],
  ['pause'],
  ['resume'],
  ['batch', 'create', 'import'],
  ['batch', 'list'],
  ['batch', 'show', UUID],
  ['batch', 'seal', UUID],
  ['batch', 'wait', UUID],
  ['batch', 'cancel', UUID, '--yes'],
  ['batch', 'retry', UUID],
  ['trash', 'list'],
  ['trash', 'show', UUID],
  ['trash', 'restore', UUID],
  ['trash', 'purge', '--all'],
  ['logbook', 'destroy', '--all'],
  ['demo'],
]
const MAKING = ['post', 'run', 'conductor', 'demo']
const ON_LOGBOOKS: readonly Words[] = [
  ['track', UUID],
  ['conductor', '--flows', 'flows.js', '--log-level', 'silent', '--burst'],
  ['run', 'hello', '--flows', 'flows.js', '--store', '{"name":"Ada"}', '--alone'],
  ['logbook', 'list'],
  ['logbook', 'show', UUID],
  ['logbook', 'destroy', '--all'],
]
const BY_UUID: readonly Words[] = [
  ['wait'],
  ['cancel'],
  ['batch', 'show'],
  ['batch', 'seal'],
  ['batch', 'wait'],
  ['batch', 'retry'],
  ['trash', 'show'],
  ['trash', 'restore'],
  ['trash', 'purge'],
  ['logbook', 'show'],
  ['logbook', 'destroy'],
]
const WITH_FLOWS: readonly Words[] = [['post', 'hello'], ['run', 'hello'], ['conductor'], ['show', TWINS[0], '--graph']]
const WITH_STORE: readonly Words[] = [
  ['post', 'hello'],
  ['run', 'hello', '--flows', 'flows.js'],
]

let place: CliFolder
let board: JobBoard
let closed: string

beforeAll(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
  await chmod(place.cwd, 0o755)
  board = await openBoard(place.board)
  closed = `zookeeper://127.0.0.1:${await freePort()}/demo`
  await using persistence = await openPersistence(place.persistence)
  for (const uuid of TWINS) {
    await board.post('twin', {}, { uuid })
    await board.batch({ name: 'twin', uuid })
    await persistence.createBook({ uuid, name: 'hello' })
  }
})
afterAll(async () => {
  await board?.close()
  await place?.[Symbol.asyncDispose]()
})

/** The exit code, and the only line there is. */
function complaint({ exitCode, stdout, stderr }: Outcome): { exitCode: number | null; line: string } {
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^jobboard: [^\n]+\n$/)
  expect(stderr).not.toContain('hunter2')
  return { exitCode, line: stderr }
}

describe.each(ON_BOARDS)('%s %s', (...args) => {
  test('a URI that is none', async () => {
    const uri = 'ftp://ada:hunter2@files/x'
    const { exitCode, line } = complaint(await place.jobboard([...args, '--board', uri]))
    expect([exitCode, line]).toEqual([2, expect.stringContaining('unknown scheme ftp:; write sqlite:')])
  })

  test('a board that cannot be reached', async () => {
    const { exitCode, line } = complaint(await place.jobboard([...args, '--board', closed, '--timeout', '20ms']))
    expect([exitCode, line]).toEqual([1, expect.stringMatching(/cannot open .*; start a server there, or correct/)])
  })

  test('a board of another user', async () => {
    const path = namespace('cli')
    await using _theirs = await openBoard(`zookeeper://ada:hunter2@${zookeeperHosts}${path}`)
    const outcome = await place.jobboard([...args, '--board', `zookeeper://${zookeeperHosts}${path}`])
    const { exitCode, line } = complaint(outcome)
    expect([exitCode, line]).toEqual([1, expect.stringContaining('JOBBOARD_ZOOKEEPER_AUTH')])
  })
})

describe.each(ON_BOARDS.filter(([name = '', action]) => !MAKING.includes(name) && action !== 'create'))(
  '%s %s',
  (...args) => {
    test('a board that is not there', async () => {
      const outcome = await place.jobboard([...args, '--board', `${place.board}-elsewhere`])
      const { exitCode, line } = complaint(outcome)
      expect([exitCode, line]).toEqual([1, expect.stringContaining('there is no board at')])
    })
  },
)

describe.each(ON_LOGBOOKS)('%s %s', (...args) => {
  test('logbooks whose URI is none', async () => {
    const { exitCode, line } = complaint(await place.jobboard([...args, '--persistence', 'mysql:x']))
    expect([exitCode, line]).toEqual([2, expect.stringContaining('the scheme mysql: is not known for logbooks; use ')])
  })

  test('logbooks that this user must not read', async () => {
    const folder = `${place.cwd}/closed`
    await mkdir(folder, { recursive: true })
    await chmod(folder, 0o700)
    const look = () => place.jobboard([...args, '--persistence', `directory:${folder}/logbooks`])
    const { exitCode, line } = complaint(await asNobody(look))
    expect([exitCode, line]).toEqual([1, expect.stringContaining(folder)])
  })
})

/** Root may read everything; nobody may not. What is to be loaded is loaded by root first. */
async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  const { seteuid, getuid } = process
  if (!seteuid || getuid?.() !== 0) {
    await chmod(`${place.cwd}/closed`, 0)
    return work()
  }
  await work().catch(() => undefined)
  seteuid(65_534)
  try {
    return await work()
  } finally {
    seteuid(0)
  }
}

describe.each(BY_UUID)('%s %s', (...args) => {
  const command = args.filter((word) => word !== undefined)
  test('what is no uuid', async () => {
    const { exitCode, line } = complaint(await place.jobboard([...command, 'nonsense']))
    expect([exitCode, line]).toEqual([2, expect.stringContaining('nonsense is not a uuid; give a uuid')])
  })

  test.each([UUID, UUID.slice(0, 8)])('nothing begins with %s', async (uuid) => {
    const { exitCode, line } = complaint(await place.jobboard([...command, uuid]))
    expect([exitCode, line]).toEqual([1, expect.stringContaining(uuid)])
  })
})

describe.each(BY_UUID.filter(([group]) => group !== 'trash'))('%s %s', (...args) => {
  test('what is part of the uuids of two', async () => {
    const command = args.filter((word) => word !== undefined)
    const { exitCode, line } = complaint(await place.jobboard([...command, '0199aaaa-0000-7000']))
    expect([exitCode, line]).toEqual([
      2,
      expect.stringMatching(/^jobboard: 0199aaaa-0000-7000 matches 2 .*; give more of the uuid, or its end\n/),
    ])
  })
})

test.each(['show', 'restore', 'purge'])('trash %s: what is part of the uuids of two', async (name) => {
  for (const last of ['3', '4']) {
    const uuid = `0199bbbb-0000-7000-8000-00000000000${last}`
    const job = await board.post('gone', {}, { uuid }).catch(() => undefined)
    if (job) await board.cancel(job)
  }
  const { exitCode, line } = complaint(await place.jobboard(['trash', name, '0199bbbb-0000-7000']))
  expect([exitCode, line]).toEqual([2, expect.stringMatching(/matches \d jobs in the trash/)])
})

describe.each(WITH_FLOWS)('%s %s', (...args) => {
  test('a module that is not there', async () => {
    const command = args.filter((word) => word !== undefined)
    const { exitCode, line } = complaint(await place.jobboard([...command, '--flows', 'lost.js']))
    expect([exitCode, line]).toEqual([
      2,
      expect.stringContaining('module lost.js does not exist: no such file relative to '),
    ])
  })
})

describe.each(WITH_STORE)('%s %s', (...args) => {
  test.each(['{"password": hunter2}', '["hunter2"]', 'hunter2'])(
    'a store that is no JSON object: %s',
    async (store) => {
      const command = args.filter((word) => word !== undefined)
      const { exitCode, line } = complaint(await place.jobboard([...command, '--store', store]))
      expect([exitCode, line]).toEqual([2, expect.stringMatching(/--store (is not JSON|must be a JSON object)/)])
    },
  )
})
