/** Boards on ZooKeeper where others were first, or may do more than is expected. */
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { ZooKeeperLayout } from '../../../../src/board/backends/zookeeper/store/layout.ts'
import { type OpenBoardOptions, openBoard } from '../../../../src/board/index.ts'
import { boardInternals } from '../../../../src/board/internal.ts'
import { decodePosting, encodePosting } from '../../../../src/board/model/posting/posting-codec.ts'
import { startConductor } from '../../../../src/conductor/index.ts'
import { AccessDenied, InvalidArgument } from '../../../../src/core/errors.ts'
import { input, linear, task } from '../../../../src/flow/index.ts'
import { openPersistence } from '../../../../src/persistence/index.ts'
import { ACL, digestId, PERMISSION } from '../../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../../support/namespace.ts'
import { connected } from '../../../zookeeper/clients.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent, rejectionOf } from '../../events.ts'

const ADA = { scheme: 'digest', auth: 'ada:love/lace' }
const EVIL = { scheme: 'digest', auth: 'evil:evil' }
const adas = { permissions: PERMISSION.ALL, ...digestId('ada', 'love/lace') }
const evils = { permissions: PERMISSION.ALL, ...digestId('evil', 'evil') }

/** A place below a parent that is open to everybody, as the root of a ZooKeeper is. */
async function somewhere(): Promise<{
  path: string
  uri: string
  open(o?: OpenBoardOptions): ReturnType<typeof openBoard>
}> {
  const parent = namespace('strangers')
  await using zookeeper = await connected()
  await zookeeper.mkdirp(parent)
  const path = `${parent}/jobs`
  const uri = `zookeeper://${zookeeperHosts}${path}`
  return { path, uri, open: (options) => openBoard(uri, options) }
}

describe.skipIf(!zookeeperHosts)('a board that is for its creator alone', () => {
  test('is not opened where a stranger has made it for both, nor are logbooks', async () => {
    const { uri, open } = await somewhere()
    await using evil = await open({ auth: [EVIL], acl: [adas, evils] })
    const failure = await rejectionOf(open({ auth: [ADA], acl: ACL.creatorAll }))
    expect(failure).toBeInstanceOf(InvalidArgument)
    expect(String(failure)).toContain('another ACL than the given one (it names digest:evil)')
    expect(String(failure)).not.toContain(evils.id)
    const byUri = uri.replace('://', '://ada:love%2Flace@')
    expect(await rejectionOf(openBoard(`${byUri}?acl=creator`))).toBeInstanceOf(InvalidArgument)
    expect(evil.connected).toBe(true)
    await using _logbooks = await openPersistence(`${uri}-books`, { auth: [EVIL], acl: [adas, evils] })
    expect(await rejectionOf(openPersistence(`${byUri}-books?acl=creator`))).toBeInstanceOf(InvalidArgument)
  })

  test('is opened again by its creator, also with further credentials', async () => {
    const { open } = await somewhere()
    await using _ada = await open({ auth: [ADA], acl: ACL.creatorAll })
    await using again = await open({ auth: [EVIL, ADA], acl: ACL.creatorAll })
    expect(again.connected).toBe(true)
  })

  test('is not opened where a stranger has made the folder of its markers', async () => {
    const { path, open } = await somewhere()
    const folder = new ZooKeeperLayout(path).sessionsFolder
    await using evil = await connected({ auth: [EVIL] })
    await evil.create(folder, null, { acl: [{ ...adas }, { ...evils }] })
    const failure = await rejectionOf(open({ auth: [ADA] }))
    expect(failure).toBeInstanceOf(AccessDenied)
    expect(String(failure)).toContain(`${folder} has another ACL than the board`)
    await evil.setACL(folder, [evils])
    expect(await rejectionOf(open({ auth: [ADA] }))).toBeInstanceOf(AccessDenied)
    await evil.delete(folder)
    await using board = await open({ auth: [ADA] })
    expect(board.connected).toBe(true)
  })
})

describe.skipIf(!zookeeperHosts)('who gives credentials and no ACL', () => {
  const logged = () => {
    const warnings: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) })
    return { log, warnings }
  }

  test('is warned once of a board that is open to everybody, or to others', async () => {
    for (const acl of [ACL.open, [adas, evils]]) {
      const { path, open } = await somewhere()
      await using _evil = await open({ auth: [EVIL], acl })
      const { log, warnings } = logged()
      await using _board = await open({ auth: [ADA], log })
      expect(warnings).toHaveLength(1)
      expect(warnings[0]).toContain(`board ${path} is open to ${acl === ACL.open ? 'world:anyone' : 'digest:evil'}`)
      expect(warnings[0]).not.toContain(evils.id)
    }
  })

  test('is warned of logbooks that are open to everybody, or to others, and not of their own', async () => {
    for (const acl of [ACL.open, [adas, evils]]) {
      const { uri, path } = await somewhere()
      await using _evil = await openPersistence(uri, { auth: [EVIL], acl })
      const { log, warnings } = logged()
      await using _logbooks = await openPersistence(uri, { auth: [ADA], log })
      expect(warnings).toHaveLength(1)
      expect(warnings[0]).toContain(`logbooks ${path} are open to ${acl === ACL.open ? 'world:anyone' : 'digest:evil'}`)
      expect(warnings[0]).not.toContain(evils.id)
    }
    const { uri } = await somewhere()
    const { log, warnings } = logged()
    await using _own = await openPersistence(uri, { auth: [ADA], log })
    await using _again = await openPersistence(uri, { auth: [ADA], log })
    expect(warnings).toEqual([])
  })

  test('is warned by a conductor that opens its logbooks itself', async () => {
    const { uri, path } = await somewhere()
    await using _evil = await openPersistence(uri, { auth: [EVIL], acl: ACL.open })
    const { log, warnings } = logged()
    const persistence = uri.replace('://', '://ada:love%2Flace@')
    const flow = linear('hello', input(), task('only', { execute: () => undefined }))
    await using _conductor = await startConductor({ board: 'memory:', persistence, flows: [flow], log })
    expect(warnings).toMatchObject([expect.stringContaining(`logbooks ${path} are open to world:anyone`)])
  })

  test('is warned of nothing on a board of their own, or with the ACL that is named', async () => {
    const { log, warnings } = logged()
    const own = await somewhere()
    await using _own = await own.open({ auth: [ADA], log })
    await using _again = await own.open({ auth: [ADA], log })
    const ours = await somewhere()
    await using _ours = await ours.open({ auth: [ADA], acl: [adas, evils], log })
    const everybodys = await somewhere()
    await using _everybodys = await everybodys.open({ log })
    expect(warnings).toEqual([])
  })
})

test.skipIf(!zookeeperHosts)(
  'jobs whose ids a stranger has put into the trash do not keep other jobs from being claimed',
  async () => {
    const { path, open } = await somewhere()
    await using board = await open()
    await using _view = await board.view()
    await using zookeeper = await connected()
    const layout = new ZooKeeperLayout(path)
    for (let n = 0; n < 5; n += 1) {
      const id = jobIdFor(await board.post('flow', {}, { priority: 'HIGH' }))
      await zookeeper.create(layout.trash(id), new Uint8Array())
      // A job that has failed too often is not claimed, but moved to the trash.
      const { data } = await zookeeper.getData(layout.posting(id))
      const posting = decodePosting(data ?? new Uint8Array(), 'msgpack')
      const attempts = [1, 2, 3].map((at) => ({ who: 'w', at: new Date(at), ended: 'failed' as const }))
      const failed = encodePosting({ ...posting, attempts }, { encoding: 'msgpack', limit: 10_000 })
      await zookeeper.setData(layout.posting(id), failed)
    }
    const reported = nextEvent(board, 'error')
    const claiming = board.claimNext()
    expect((await reported).error).toMatchObject({ code: 'JOBBOARD_DUPLICATE' })
    await board.post('flow', {}, { name: 'innocent' })
    expect((await claiming)[0]?.job.name).toBe('innocent')
    expect(boardInternals(board).claimFault).toBeUndefined()
  },
)

describe.skipIf(!zookeeperHosts)('a name that ZooKeeper would give next, and that another program has used', () => {
  test.each([
    ['the history', (layout: ZooKeeperLayout) => ({ folder: layout.historyFolder, name: '1-' })],
    ['the jobs', (layout: ZooKeeperLayout) => ({ folder: layout.path, name: 'job' })],
  ])('in %s does not stop posts or the ends of jobs', async (_, where) => {
    const { path, open } = await somewhere()
    await using board = await open()
    await using zookeeper = await connected()
    await (await board.claim(await board.post('flow', {}))).consume()
    const { folder, name } = where(new ZooKeeperLayout(path))
    // ZooKeeper numbers sequential znodes by `cversion` of their folder. This create raises it by one.
    const plant = async (ahead: number) => {
      const changes = (await zookeeper.exists(folder))?.cversion ?? 0
      await zookeeper.create(`${folder}/${name}${String(changes + ahead).padStart(10, '0')}`, new Uint8Array())
    }
    for (const ahead of [1, 2, 3, 5]) await plant(ahead)
    for (let n = 0; n < 4; n += 1) await (await board.claim(await board.post('flow', {}))).consume()
    expect((await board.history()).filter(({ outcome }) => outcome === 'COMPLETE')).toHaveLength(5)
  })
})
