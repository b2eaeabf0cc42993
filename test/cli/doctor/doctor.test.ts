/** `jobboard doctor` finds what is wrong with boards and logbooks, and says what to do. */
import { chmod, mkdir } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { clockFinding } from '../../../src/cli/doctor/finding.ts'
import { examineJobs } from '../../../src/cli/doctor/jobs.ts'
import { examineNode, numbersFinding } from '../../../src/cli/doctor/zookeeper.ts'
import { openBoard, openPersistence } from '../../../src/index.ts'
import { conductorView } from '../../../src/views/index.ts'
import { ACL, digestId, PERMISSION, ZooKeeper } from '../../../src/zookeeper/index.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { freePort } from '../../support/ports.ts'
import { createDatabase } from '../../support/postgres-database.ts'
import { connected } from '../../zookeeper/clients.ts'
import { type CliFolder, createCliFolder, jsonLines } from '../workplace.ts'

interface Said {
  readonly severity: 'ok' | 'warning' | 'error'
  readonly about: string
  readonly text: string
  readonly advice?: string
}

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
})
afterEach(async () => place[Symbol.asyncDispose]())

async function doctor(...args: string[]): Promise<{ exitCode: number | null; found: Said[] }> {
  const { exitCode, stdout, stderr } = await place.jobboard(['doctor', '--json', '--timeout', '2s', ...args])
  expect(stderr).toBe('')
  const found = jsonLines(stdout) as Said[]
  for (const { severity, advice } of found) expect(advice !== undefined).toBe(severity !== 'ok')
  return { exitCode, found }
}

const wrong = <F extends Pick<Said, 'severity'>>(found: readonly F[]) =>
  found.filter(({ severity }) => severity !== 'ok')

test('the marker by which the doctor reads the clock of ZooKeeper has the ACL of the board', async () => {
  const made: [path: string, acl: unknown][] = []
  const create = ZooKeeper.prototype.create
  const spy = vi.spyOn(ZooKeeper.prototype, 'create').mockImplementation(async function (this: ZooKeeper, ...args) {
    const created = await create.apply(this, args)
    made.push([args[0], (await this.getACL(created.path)).acl])
    return created
  })
  onTestFinished(() => spy.mockRestore())
  const auth = [{ scheme: 'digest', auth: 'ada:hunter2' }]
  await using _board = await openBoard(place.board, { auth, acl: ACL.creatorAll })
  made.length = 0
  const security = { auth }
  const findings = await examineNode({ uri: place.board, what: 'board', security, timeout: 5_000 })
  expect(findings.map(({ about }) => about)).toContain('clock')
  expect(made).toEqual([
    [expect.stringMatching(/-sessions\//), [{ permissions: PERMISSION.ALL, ...digestId('ada', 'hunter2') }]],
  ])
})

describe('a board that is well', () => {
  test('on ZooKeeper: each thing is said to be so', async () => {
    await using _board = await openBoard(place.board)
    await using _persistence = await openPersistence(place.persistence)
    const { exitCode, found } = await doctor()
    expect([exitCode, wrong(found)]).toEqual([0, []])
    expect(found.map(({ about }) => about)).toEqual(
      ['server', 'board', 'session', 'clock', 'rights', 'numbers', 'conductors', 'jobs'].concat(
        'logbooks',
        'rights',
        'disk',
      ),
    )
    expect(found[0]?.text).toMatch(/^127\.0\.0\.1:\d+ is ZooKeeper 3\.\d+\.\d+, standalone$/)
    const plain = await place.jobboard(['doctor'], { columns: 80 })
    expect(plain.stdout).toMatch(/server {6}127/)
    expect(plain.stdout).toContain('\x1b[32mok\x1b[39m       server')
    expect(plain.stdout).toMatch(/all is well/)
  })

  test('on Postgres', async () => {
    await using server = await createDatabase()
    const board = `${server.uri}?board=cli`
    await using _board = await openBoard(board)
    await using _persistence = await openPersistence(server.uri)
    const { exitCode, found } = await doctor('--board', board, '--persistence', server.uri)
    expect([exitCode, wrong(found)]).toEqual([0, []])
    expect(found.map(({ text }) => text).join('\n')).toMatch(/Postgres \d+\.\d+, \d+ of \d+ connections are taken/)
  })
})

describe('jobs', () => {
  test('of a queue that no living conductor serves', async () => {
    await using board = await openBoard(place.board)
    const metadata = { flows: ['hello'], queues: { 'tenant-*': 2, bulk: 1 } }
    await using _one = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
    for (const queue of ['tenant-1', 'bulk', 'bluk', 'bluk', 'default']) await board.post('hello', {}, { queue })
    const said = wrong((await doctor()).found).map(({ about, text, advice }) => [about, text, advice])
    expect(said.filter(([about]) => about === 'queue')).toEqual([
      [
        'queue',
        'queue bluk is served by no living conductor, and 2 jobs wait in it',
        'start one: jobboard conductor --flows MODULE --queue bluk',
      ],
      ['queue', 'queue default is served by no living conductor, and 1 job waits in it', expect.any(String)],
    ])
  })

  test('that kill their owners, that no conductor knows, that are stuck, and postings that cannot be read', async () => {
    await using board = await openBoard(place.board, { who: 'hung' })
    const poison = await board.post('hello', {})
    for (const who of ['first', 'second']) {
      const victim = await openBoard(place.board, { who })
      await victim.claim(await victim.find(poison.uuid))
      await victim.close()
    }
    const orphan = await board.post('nobody', {})
    await using claim = await board.claim(await board.post('hello', {}))
    await using _one = await board.registerEntity({ kind: 'conductor', name: 'one', metadata: { flows: ['hello'] } })
    await using zookeeper = await connected({ hosts: zookeeperHosts })
    await zookeeper.create(`${place.path}/job`, Buffer.from('garbage'), { sequential: true })
    await board.pause({ reason: 'the database moves' })

    const { exitCode, found } = await doctor('--stuck-after', '0')
    expect(exitCode).toBe(1)
    const said = wrong(found).map(({ severity, about, text }) => `${severity} ${about}: ${text}`)
    expect(said).toEqual([
      expect.stringMatching(
        /^warning pause: the board is paused since \S+Z by .+: the database moves; no job is claimed$/,
      ),
      expect.stringMatching(new RegExp(`^warning claim: job ${claim.job.uuid} \\(hello\\): claimed by hung for `)),
      `error poison: the last 2 owners of job ${poison.uuid} died while they ran it`,
      `error flow: 1 job of flow nobody, which no living conductor knows: ${orphan.uuid}`,
      expect.stringMatching(/^error posting: \S+\/job\d+ .*; it is not claimed here, remove or repair it$/),
      expect.stringMatching(/^warning logbooks: there are no logbooks in /),
    ])
    expect(conductorView((await board.entities('conductor'))[0] ?? never()).name).toBe('one')
    await board.resume()
    await using _again = await board.claim(await board.find(poison.uuid))
    const running = (await doctor()).found.find(({ about }) => about === 'suspect')
    expect(running).toMatchObject({ severity: 'warning', text: expect.stringContaining('hung has run it for') })
    expect(running?.advice).not.toContain('cancel')
  })

  test('that were asked to stop and run all the same', async () => {
    // In memory: a session with a server takes a clock that jumps for a machine that was suspended.
    await using board = await openBoard('memory:', { who: 'deaf' })
    await using _one = await board.registerEntity({ kind: 'conductor', name: 'deaf', metadata: { flows: ['hello'] } })
    await using late = await board.claim(await board.post('hello', {}, { deadline: 1 }))
    await using fine = await board.claim(await board.post('hello', {}, { deadline: '1h' }))
    await using cancelled = await board.claim(await board.post('hello', {}))
    await board.cancel(cancelled.job)
    // The doctor allows for clocks that differ by two seconds.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 17_000 })
    const found = await examineJobs({ board, unreadable: [], stuckAfter: 3_600_000 }).finally(() => vi.useRealTimers())
    expect(wrong(found).map(({ text }) => text)).toEqual([
      expect.stringMatching(
        new RegExp(
          `^job ${late.job.uuid} \\(hello\\): its deadline passed 1\\d(\\.\\d)?s ago, and deaf still runs it$`,
        ),
      ),
      `job ${cancelled.job.uuid} (hello): its cancellation was requested, and deaf still runs it`,
    ])
    expect(fine.lost.aborted).toBe(false)
  })

  test('that others wait for in vain, because no living conductor knows their flow', async () => {
    await using board = await openBoard('memory:')
    await using _one = await board.registerEntity({ kind: 'conductor', name: 'one', metadata: { flows: ['hello'] } })
    await board.post('hello', {}, { name: 'before', resources: { exclusive: ['disk'] } })
    const old = await board.post('old', {}, { resources: { exclusive: ['disk'], shared: ['net'] } })
    await board.post('hello', {}, { name: 'shares', resources: { shared: ['net'] } })
    await board.post('hello', {}, { name: 'alone', resources: { exclusive: ['net'] } })
    await board.post('hello', {}, { name: 'disk', resources: { shared: ['disk'] } })
    const found = wrong(await examineJobs({ board, unreadable: [], stuckAfter: 3_600_000 }))
    expect(found.map(({ severity, about, text }) => `${severity} ${about}: ${text}`)).toEqual([
      `error flow: 1 job of flow old, which no living conductor knows: ${old.uuid}`,
      `warning resources: 2 jobs want resources that ${old} wants before them, and no living conductor knows its flow`,
    ])
  })

  test('of conductors whose application has several releases', async () => {
    await using board = await openBoard('memory:')
    const metadata = { version: '0.1.0', release: 'may' }
    await using _one = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
    const next = { ...metadata, release: 'june' }
    await using _two = await board.registerEntity({ kind: 'conductor', name: 'two', metadata: next })
    const [found] = await examineJobs({ board, unreadable: [], stuckAfter: 3_600_000 })
    expect(found?.text).toBe('2 conductors, jobboard 0.1.0, application releases june and may')
  })

  test('of a conductor that lists its flows with their versions', async () => {
    await using board = await openBoard('memory:')
    const metadata = { flows: [{ name: 'hello', version: '2' }] }
    await using _one = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
    const known = await board.post('hello', {}, { resources: { exclusive: ['disk'] } })
    await board.post('hello', {}, { resources: { exclusive: ['disk'] } })
    const orphan = await board.post('import', {})
    const found = wrong(await examineJobs({ board, unreadable: [], stuckAfter: 3_600_000 }))
    expect(found.map(({ text }) => text)).toEqual([
      `1 job of flow import, which no living conductor knows: ${orphan.uuid}`,
    ])
    expect((await board.entities('conductor')).map(conductorView)).toMatchObject([{ name: 'one', flows: ['hello'] }])
    expect(await board.waitingFor(known)).toBeUndefined()
    expect(await board.waitingFor(orphan)).toMatchObject({ kind: 'flow', flow: 'import' })
  })

  test('that wait for a conductor', async () => {
    await using board = await openBoard(place.board)
    await board.post('hello', {})
    const { exitCode, found } = await doctor()
    expect(exitCode).toBe(0)
    expect(wrong(found)[0]).toEqual({
      severity: 'warning',
      about: 'conductors',
      text: 'no conductor is connected, and 1 job waits',
      advice: 'start one: jobboard conductor --flows MODULE',
    })
  })
})

function never(): never {
  throw new Error('there is one')
}

describe('what cannot be reached, or must not be touched', () => {
  test('a server that is not there, a board that is not there', async () => {
    const nowhere = `127.0.0.1:${await freePort()}`
    const { exitCode, found } = await doctor('--board', `zookeeper://${nowhere}/demo`, '--timeout', '300ms')
    expect(exitCode).toBe(1)
    expect(wrong(found).slice(0, 2)).toMatchObject([
      { severity: 'warning', about: 'server', text: expect.stringContaining(`${nowhere} does not answer: `) },
      { severity: 'error', about: 'board', text: expect.stringContaining('ECONNREFUSED') },
    ])
    const missing = await doctor()
    expect(missing.exitCode).toBe(1)
    expect(wrong(missing.found)[0]?.text).toContain('there is no board at ')
  })

  test('rights that are missing', async () => {
    await using board = await openBoard(place.board)
    await using zookeeper = await connected({ hosts: zookeeperHosts })
    await zookeeper.setACL(place.path, ACL.read)
    const { exitCode, found } = await doctor()
    expect(exitCode).toBe(1)
    expect(wrong(found)).toContainEqual({
      severity: 'error',
      about: 'rights',
      text: `${place.path} does not let this client write, create, delete`,
      advice: expect.stringContaining('JOBBOARD_ZOOKEEPER_AUTH'),
    })
    expect(board.connected).toBe(true)
  })

  test('logbooks: none named, and a file in the place of the folder', async () => {
    await using _board = await openBoard(place.board)
    const { stdout } = await place.bare(['doctor', '--json', '--board', place.board])
    expect(wrong(jsonLines(stdout) as Said[])).toMatchObject([{ severity: 'warning', text: 'no logbooks were named' }])
    await place.write('file', '')
    const file = await doctor('--persistence', `directory:${place.cwd}/file`)
    expect(file.exitCode).toBe(1)
    expect(wrong(file.found)[0]?.text).toContain('is a file')
  })

  test('a folder that this user must not write', async () => {
    const folder = `${place.cwd}/closed`
    await mkdir(folder)
    await chmod(folder, 0o500)
    const { examineDirectory } = await import('../../../src/cli/doctor/directory.ts')
    const [rights] = await examineDirectory(folder)
    // Root may do everything, and is told so.
    expect(rights?.severity).toBe(process.getuid?.() === 0 ? 'ok' : 'error')
  })
})

describe('what takes years to come about', () => {
  test.each([
    [0, false, 'ok'],
    [1_700_000_000, false, 'ok'],
    [1_800_000_000, false, 'warning'],
    [1_800_000_000, true, 'error'],
    [-2_147_483_000, false, 'warning'],
  ])('%d numbers are used up, shared %s: %s', (count, shared, severity) => {
    expect(numbersFinding(count, { path: '/demo', shared }).severity).toBe(severity)
  })

  test.each([
    [[-3, 12], 'ok', /agrees/],
    [[4_900, 5_000], 'warning', /clock is 4\.9s ahead of/],
    [[-60_100, -60_000], 'warning', /clock is 60s behind/],
  ] as const)('clocks that differ by %j: %s', ([least, most], severity, text) => {
    const finding = clockFinding([least, most])
    expect(finding.severity).toBe(severity)
    expect(finding.text).toMatch(text)
  })
})
