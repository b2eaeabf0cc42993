/** Boards that are not for everybody: who may what, on every znode, in every life, and what is said to those who may not. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Logger, pino } from 'pino'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { TransactionStep } from '../../../../src/board/backends/zookeeper/commit/transaction.ts'
import * as transactions from '../../../../src/board/backends/zookeeper/commit/transactions.ts'
import { ownBoard } from '../../../../src/board/backends/zookeeper/store/board-kind.ts'
import { ZooKeeperLayout } from '../../../../src/board/backends/zookeeper/store/layout.ts'
import { type OpenBoardOptions, openBoard } from '../../../../src/board/index.ts'
import { AccessDenied, InvalidArgument, NotConnected } from '../../../../src/core/errors.ts'
import { ACL, digestId, NoAuth, PERMISSION, TlsFailed } from '../../../../src/zookeeper/index.ts'
import { type Authority, createAuthority } from '../../../support/certificates.ts'
import { expireSession } from '../../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../../support/namespace.ts'
import { type SecureZooKeeper, startSecureZooKeeper } from '../../../support/zookeeper-secure.ts'
import { usual as test, variant } from '../../../variant.ts'
import { connected } from '../../../zookeeper/clients.ts'
import { nextEvent, nextSession, rejectionOf } from '../../events.ts'
import { claimed, namesOn } from '../../jobs.ts'
import { AclRecorder, exerciseBoard, KINDS } from './secure-life.ts'

const ADA = { scheme: 'digest', auth: 'ada:love/lace' }
const BOB = { scheme: 'digest', auth: 'bob:builder' }
const adas = { permissions: PERMISSION.ALL, ...digestId('ada', 'love/lace') }
const bobs = { permissions: PERMISSION.ALL, ...digestId('bob', 'builder') }

/** A place of its own, two znodes deep, so that the board makes what is above it as well. */
function somewhere(): { path: string; parent: string; open(options?: OpenBoardOptions): ReturnType<typeof openBoard> } {
  const parent = namespace('secure')
  const path = `${parent}/jobs`
  return { path, parent, open: (options) => openBoard(`zookeeper://${zookeeperHosts}${path}`, options) }
}

describe.skipIf(!zookeeperHosts)('a board of one user', () => {
  test('has their ACL on every znode, all its life long', async () => {
    const { path, parent } = somewhere()
    await using observer = await connected({ auth: [ADA] })
    await using board = await openBoard(`zookeeper://ada:love%2Flace@${zookeeperHosts}${path}`)
    const seen = new AclRecorder(observer, path)
    await exerciseBoard(board, seen)
    expect([...seen.acls.keys()].sort()).toEqual(KINDS)
    for (const [kind, acl] of seen.acls) expect({ kind, acl }).toEqual({ kind, acl: [adas] })
    expect((await observer.getACL(parent)).acl).toEqual([adas])
  })

  test('lets no other user create a board beside it, if it has created their parent; an open parent does', async () => {
    const { path, parent, open } = somewhere()
    await using observer = await connected()
    await using _board = await open({ auth: [ADA] })
    const beside = (at: string) => openBoard(`zookeeper://${zookeeperHosts}${at}`, { auth: [BOB] })
    const refused = await rejectionOf(beside(`${path}-of-bob`))
    expect(refused).toBeInstanceOf(AccessDenied)
    expect(String(refused)).toContain(`the ACL of its parent ${parent} does not allow it`)
    const shared = namespace('shared')
    await observer.create(shared, null)
    await using _adas = await openBoard(`zookeeper://${zookeeperHosts}${shared}/ada`, { auth: [ADA] })
    await using _bobs = await beside(`${shared}/bob`)
  })

  test('is closed to everybody else: they cannot read, post, claim, settle, cancel or pause', async () => {
    const { path, open } = somewhere()
    await using observer = await connected({ auth: [ADA] })
    await using board = await open({ auth: [ADA] })
    await using _entity = await board.registerEntity({ kind: 'worker', name: 'one', metadata: {} })
    await board.post('flow', {}, { name: 'claimed', resources: { exclusive: ['disk'] }, key: 'k' })
    const claim = await claimed(board, 'claimed')
    await board.post('flow', {}, { name: 'trashed' })
    await (await claimed(board, 'trashed')).trash()
    await board.post('flow', {}, { name: 'waits' })
    const seen = new AclRecorder(observer, path)
    const paths = await seen.paths()
    expect(paths.length).toBeGreaterThan(15)

    for (const auth of [[], [BOB], [{ scheme: 'digest', auth: 'ada:guessed' }]]) {
      await using stranger = await connected({ auth })
      for (const each of paths) {
        for (const reading of [stranger.getData(each), stranger.getChildren(each), stranger.getACL(each)])
          expect(await rejectionOf(reading), each).toBeInstanceOf(NoAuth)
      }
      for (const [what, steps] of Object.entries(attacksOn(path, paths))) {
        expect(await rejectionOf(stranger.multi(steps.map(({ op }) => op))), what).toBeInstanceOf(NoAuth)
      }
      const failure = await rejectionOf(open({ auth }))
      expect(failure).toMatchObject({ name: 'AccessDenied', code: 'JOBBOARD_ACCESS_DENIED' })
      expect(String(failure)).toContain(
        `opening zookeeper://${zookeeperHosts}${path}: getData ${path}: the ACL does not`,
      )
      expect(String(failure)).toContain(
        'open the board with credentials that its ACL names: zookeeper://user:password@host/path',
      )
      expect(String(failure)).toContain(auth.length > 0 ? 'wrong user or password?' : 'no credentials were given')
    }
    expect(await seen.paths()).toEqual(paths)
    await claim.consume()
    expect(await namesOn(board)).toEqual(['waits'])
  })

  test('goes on in the next session, whose first words say who it is', async () => {
    const { path, open } = somewhere()
    await using observer = await connected({ auth: [ADA] })
    await using board = await open({ auth: [ADA] })
    const errors: unknown[] = []
    board.on('error', ({ error }) => errors.push(error))
    await using _entity = await board.registerEntity({ kind: 'worker', name: 'two', metadata: {} })
    await board.post('flow', {})
    const [claim] = await board.claimNext()
    const worker = new ZooKeeperLayout(path).entity('worker', 'two')
    const { ephemeralOwner } = (await observer.getData(worker)).stat
    const reborn = nextSession(board)
    await expireSession(zookeeperHosts, ephemeralOwner)
    await reborn
    expect(claim.lost.aborted).toBe(true)
    const [again] = await board.claimNext()
    await again.consume()
    await expect.poll(() => observer.exists(worker)).toMatchObject({ version: 0 })
    expect((await observer.getData(worker)).stat.ephemeralOwner).not.toBe(ephemeralOwner)
    const seen = new AclRecorder(observer, path)
    await exerciseBoard(board, seen)
    for (const [kind, acl] of seen.acls) expect({ kind, acl }).toEqual({ kind, acl: [adas] })
    expect(errors).toEqual([])
  })

  test('does not say their password, in any log or error', async () => {
    const written: string[] = []
    const log: Logger = pino({ level: 'trace' }, { write: (line: string) => written.push(line) })
    const { path } = somewhere()
    const said = (error: unknown) => written.push(`${error} ${JSON.stringify(error)} ${(error as Error).stack}`)
    const uri = (password: string, rest = '') => `zookeeper://ada:${password}@${zookeeperHosts}${path}${rest}`
    {
      await using board = await openBoard(uri('hunter2'), { log })
      board.on('state', said)
      await exerciseBoard(board)
      said(board.uri)
      said(await rejectionOf(board.find('nothing')))
    }
    said(await rejectionOf(openBoard(uri('hunter3'), { log })))
    said(await rejectionOf(openBoard(uri('hunter2', '?acl=open'), { log })))
    said(await rejectionOf(openBoard(uri('hun/ter2'), { log })))
    said(await rejectionOf(openBoard(`zookeeper://ada:hunter2@127.0.0.1:1${path}?sessionTimeout=100ms`, { log })))
    expect(written.join('\n')).toContain(`zookeeper://ada:***@${zookeeperHosts}${path}`)
    expect(written.join('\n')).not.toMatch(/hunter|ter2/)
  })
})

/** What the owner could do, with everything known that can be. */
function attacksOn(path: string, paths: readonly string[]): Readonly<Record<string, readonly TransactionStep[]>> {
  const layout = new ZooKeeperLayout(path)
  const id = (pattern: RegExp) =>
    layout.toJobId(paths.find((each) => pattern.test(each)) ?? 'none').replace('.lock', '')
  const [held, trashed] = [id(/\.lock$/), id(/\.trash\/job/)]
  const waiting = layout.toJobId(
    paths.filter((each) => /jobs\/job\d+$/.test(each)).find((each) => !each.endsWith(held)) ?? '',
  )
  const bytes = Buffer.from('forged')
  const at = {
    revision: 1,
    posting: { resources: { exclusive: ['disk'] }, key: 'k' },
    cancelRequested: false,
    kind: ownBoard,
  }
  const [gate, marker] = [
    transactions.gateSteps(layout, bytes, { version: 1 }),
    paths.find((each) => each.includes('-sessions/')) ?? '',
  ]
  return {
    post: [transactions.createStep(layout, { bytes })],
    claim: transactions.claimSteps(layout, waiting, {
      ...{ ...at, revision: 0, bytes, lock: bytes },
      parts: transactions.permitSteps(layout, waiting, at.posting),
    }),
    consume: transactions.consumeSteps(layout, held, at),
    abandon: transactions.abandonSteps(layout, held, { ...at, bytes }),
    trash: transactions.trashSteps(layout, held, { ...at, entry: bytes }),
    discard: transactions.discardSteps(layout, waiting, { ...at, revision: 0, entry: bytes }),
    restore: [
      ...transactions.purgeSteps(layout, { id: trashed, revision: 0 }),
      transactions.createStep(layout, { bytes }),
    ],
    purge: transactions.purgeSteps(layout, { id: trashed, revision: 0 }),
    cancel: transactions.cancelSteps(layout, waiting, bytes),
    gate,
    ...Object.fromEntries(
      [layout.lock(held), layout.exclusivePermit('disk'), layout.key('k'), layout.entity('worker', 'one'), marker].map(
        (each) => [`delete ${each}`, [{ about: 'lock', op: { type: 'delete', path: each, version: -1 } } as const]],
      ),
    ),
  }
}

describe.skipIf(!zookeeperHosts)("a board's ACL", () => {
  test('is chosen by who makes it, and taken over by all who open it', async () => {
    const { path, open } = somewhere()
    await using observer = await connected({ auth: [ADA] })
    await using adasBoard = await open({ auth: [ADA], acl: [adas, bobs] })
    await using bobsBoard = await open({ auth: [BOB] })
    const seen = new AclRecorder(observer, path)
    await exerciseBoard(bobsBoard, seen)
    await adasBoard.post('flow', {}, { name: 'for bob' })
    await (await claimed(bobsBoard, 'for bob')).consume()
    expect([...seen.acls.keys()].sort()).toEqual(KINDS)
    for (const [kind, acl] of seen.acls) expect({ kind, acl }).toEqual({ kind, acl: [adas, bobs] })
    await using _same = await open({ auth: [BOB], acl: [bobs, adas] })
    for (const acl of [[bobs], [adas, bobs, ...ACL.read], ACL.open, [{ ...adas, permissions: 1 }, bobs]]) {
      const failure = await rejectionOf(open({ auth: [BOB], acl }))
      expect(failure).toBeInstanceOf(InvalidArgument)
      expect(String(failure)).toContain(`board ${path} exists and has another ACL than the given one; leave`)
    }
  })

  test('may be for its creator only; such a board is not opened where it is for everybody', async () => {
    const { path, open } = somewhere()
    await using observer = await connected()
    await using _everybodys = await open()
    expect(await rejectionOf(open({ auth: [ADA], acl: ACL.creatorAll }))).toBeInstanceOf(InvalidArgument)
    await using guest = await open({ auth: [ADA] })
    const seen = new AclRecorder(observer, path)
    await exerciseBoard(guest, seen)
    for (const [kind, acl] of seen.acls) expect({ kind, acl }).toEqual({ kind, acl: ACL.open })
    const own = somewhere()
    await using _adas = await own.open({ auth: [ADA], acl: ACL.creatorAll })
    await using _again = await own.open({ auth: [ADA], acl: ACL.creatorAll })
    const nobodys = await rejectionOf(somewhere().open({ acl: ACL.creatorAll }))
    expect(nobodys).toBeInstanceOf(InvalidArgument)
    expect(String(nobodys)).toContain('one for its creator takes credentials')
  })

  test('has to be given by those who are not shown it', async () => {
    const { open } = somewhere()
    const bobWorks = { ...bobs, permissions: PERMISSION.ALL - PERMISSION.ADMIN }
    await using _adas = await open({ auth: [ADA], acl: [adas, bobWorks] })
    const failure = await rejectionOf(open({ auth: [BOB] }))
    expect(failure).toBeInstanceOf(AccessDenied)
    expect(String(failure)).toContain('give that ACL as the option acl')
    await using bobsBoard = await open({ auth: [BOB], acl: [adas, bobWorks] })
    await exerciseBoard(bobsBoard)
  })

  test('of a posting that is not ours hides that one alone', async () => {
    const { path, open } = somewhere()
    await using board = await open()
    await using stranger = await connected({ auth: [BOB] })
    await board.post('flow', {}, { name: 'a' })
    await stranger.create(`${path}/job`, Buffer.from('x'), { sequential: true, acl: [bobs] })
    await board.post('flow', {}, { name: 'b' })
    expect(await namesOn(board)).toEqual(['a', 'b'])
    // Servers do not tell of what one may not read: who was there before finds it with the next scan.
    await using later = await open()
    const failed = nextEvent(later, 'error')
    using _view = await later.view()
    expect(String((await failed).error)).toMatch(/has an ACL that is not the board's and this client cannot read it/)
    expect(await namesOn(later)).toEqual(['a', 'b'])
  })

  variant('may be long: what goes out together is no more than a server takes', async () => {
    const { open } = somewhere()
    const many = Array.from({ length: 40 }, (_, user) => ({ permissions: 1, ...digestId(`user-${user}`, 'x') }))
    await using board = await open({ auth: [ADA], acl: [adas, ...many] })
    const posted = await Promise.all(Array.from({ length: 1_000 }, () => board.post('flow', {})))
    expect(new Set(posted.map(({ uuid }) => uuid)).size).toBe(1_000)
    expect(await board.claimNext({ max: 1_000 })).toHaveLength(1_000)
  })

  test('makes no sense in memory', async () => {
    for (const options of [{ auth: [ADA] }, { acl: ACL.open }, { tls: {} }, { sasl: { username: 'a', password: 'b' } }])
      expect(await rejectionOf(openBoard('memory:', options))).toBeInstanceOf(InvalidArgument)
  })
})

describe.skipIf(!zookeeperHosts)('a board behind TLS', () => {
  let authority: Authority
  let server: SecureZooKeeper
  let parameters: string

  beforeAll(async () => {
    authority = await createAuthority()
    server = await startSecureZooKeeper({ authority, clientAuth: 'need', users: { bob: 'builder' } })
    const { cert, key } = await authority.issue({ commonName: 'worker-1' })
    const files = { ca: authority.cert, cert, key }
    const entries = Object.entries(files).map(async ([name, text]) => {
      const file = join(authority.folder, `worker.${name}`)
      await writeFile(file, text)
      return [name, file] as const
    })
    parameters = `?${new URLSearchParams(Object.fromEntries(await Promise.all(entries)))}`
  })

  afterAll(async () => {
    await server?.stop()
    await authority?.[Symbol.asyncDispose]()
  })

  test('is for who shows a certificate and logs in, by URI', async () => {
    const { path } = somewhere()
    await using board = await openBoard(`zookeepers://bob:builder@${server.secureHosts}${path}${parameters}&login=sasl`)
    await using observer = await connected({ hosts: server.hosts, sasl: { username: 'bob', password: 'builder' } })
    const seen = new AclRecorder(observer, path)
    await exerciseBoard(board, seen)
    expect([...seen.acls.keys()].sort()).toEqual(KINDS)
    const both = [
      { permissions: PERMISSION.ALL, scheme: 'sasl', id: 'bob' },
      { permissions: PERMISSION.ALL, scheme: 'x509', id: 'CN=worker-1' },
    ]
    for (const [kind, acl] of seen.acls) {
      expect({ kind, acl: [...acl].sort((a, b) => (a.scheme < b.scheme ? -1 : 1)) }).toEqual({ kind, acl: both })
    }
    const stranger = await rejectionOf(openBoard(`zookeeper://${server.hosts}${path}`))
    expect(stranger).toBeInstanceOf(AccessDenied)
  })

  variant('is for who shows a certificate alone, by options', async () => {
    const { path } = somewhere()
    const worker = { permissions: PERMISSION.ALL, scheme: 'x509', id: 'CN=worker-2' }
    const tls = { ca: authority.cert, ...(await authority.issue({ commonName: 'worker-2' })) }
    await using board = await openBoard(`zookeepers://${server.secureHosts}${path}`, { tls, acl: [worker] })
    await using observer = await connected({ hosts: server.secureHosts, tls })
    const seen = new AclRecorder(observer, path)
    await exerciseBoard(board, seen)
    for (const [kind, acl] of seen.acls) expect({ kind, acl }).toEqual({ kind, acl: [worker] })
    const other = await rejectionOf(openBoard(`zookeepers://${server.secureHosts}${path}${parameters}`))
    expect(other).toBeInstanceOf(AccessDenied)
  })

  variant('says what is wrong, and not after a long time', async () => {
    const { path } = somewhere()
    const ca = parameters.split('&')[0]
    const cases: [string, RegExp, abstract new (...args: never) => Error][] = [
      [
        `zookeeper://${server.secureHosts}${path}`,
        /it speaks TLS on this port, and this client does not: .*zookeepers:/,
        TlsFailed,
      ],
      [`zookeepers://${server.hosts}${path}${parameters}`, /it does not speak TLS on this port/, TlsFailed],
      [
        `zookeepers://${server.secureHosts}${path}${ca}`,
        /it may want a certificate of this client.*: cert and key/,
        TlsFailed,
      ],
      [
        `zookeepers://127.0.0.1:${server.securePort}${path}${parameters}`,
        /is for another host .* servername/,
        TlsFailed,
      ],
      [
        `zookeeper://bob:wrong@${server.hosts}${path}?login=sasl`,
        /SASL password of "bob"; correct its cred/,
        AccessDenied,
      ],
    ]
    for (const [uri, says, type] of cases) {
      const failure = await rejectionOf(openBoard(`${uri}${uri.includes('?') ? '&' : '?'}sessionTimeout=1m`))
      expect(failure, uri).toBeInstanceOf(type)
      if (type === TlsFailed) expect(failure).toBeInstanceOf(NotConnected)
      expect(String(failure)).toMatch(says)
      expect(String(failure)).not.toMatch(/\n|wrong/)
    }
  })
})
