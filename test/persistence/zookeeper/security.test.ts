/** Logbooks in ZooKeeper that are not for everybody: credentials, TLS and ACLs, by URI and by options, as of boards. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AccessDenied, InvalidArgument, StorageFailure } from '../../../src/core/errors.ts'
import { type OpenPersistenceOptions, openPersistence } from '../../../src/persistence/index.ts'
import { gonePath, LogbookLayout } from '../../../src/persistence/zookeeper/layout.ts'
import { encodeBook } from '../../../src/persistence/zookeeper/records.ts'
import { ACL, digestId, NoAuth, PERMISSION, TlsFailed, type ZooKeeper } from '../../../src/zookeeper/index.ts'
import { type Authority, createAuthority } from '../../support/certificates.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { type SecureZooKeeper, startSecureZooKeeper } from '../../support/zookeeper-secure.ts'
import { connected } from '../../zookeeper/clients.ts'
import { atom, atomNames, requestOf } from '../flows.ts'

const ADA = { scheme: 'digest', auth: 'ada:love/lace' }
const adas = { permissions: PERMISSION.ALL, ...digestId('ada', 'love/lace') }

const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

function somewhere() {
  const parent = namespace('secure-books')
  const path = `${parent}/logbooks`
  const open = (options?: OpenPersistenceOptions) =>
    openPersistence(`zookeeper://${zookeeperHosts}${path}?retryFor=0`, options)
  return { parent, path, open }
}

async function tree(zookeeper: ZooKeeper, path: string): Promise<string[]> {
  const { names } = await zookeeper.getChildren(path)
  const below = await Promise.all(names.map((name) => tree(zookeeper, `${path}/${name}`)))
  return [path, ...below.flat()]
}

describe.skipIf(!zookeeperHosts)('logbooks of one user', () => {
  test('have their ACL on every znode, and are closed to everybody else', async () => {
    const { parent, path, open } = somewhere()
    await using observer = await connected({ auth: [ADA] })
    const uri = `zookeeper://ada:love%2Flace@${zookeeperHosts}${path}`
    await using persistence = await openPersistence(uri)
    expect(persistence.uri).toBe(`zookeeper://ada:***@${zookeeperHosts}${path}`)
    const log = await persistence.acquire(requestOf('book', 1))
    await log.write({ state: 'RUNNING', atoms: [atom('one'), atom('two')] })
    await persistence.createBook({ uuid: 'empty', name: 'empty' })
    await persistence.createFlow({ book: { uuid: 'made', name: 'made' }, flow: requestOf('made', 1).flow })
    const paths = await tree(observer, parent)
    // The root, three shards, three books, two flows with a term each, two atoms, and the parent.
    expect(paths).toHaveLength(14)
    for (const each of paths) expect({ each, acl: (await observer.getACL(each)).acl }).toEqual({ each, acl: [adas] })

    for (const auth of [[], [{ scheme: 'digest', auth: 'ada:guessed' }]]) {
      await using stranger = await connected({ auth })
      for (const each of paths) expect(await failureOf(stranger.getData(each)), each).toBeInstanceOf(NoAuth)
      for (const create of [true, false]) {
        const refusal = await failureOf(open({ auth, create }))
        expect(refusal).toBeInstanceOf(AccessDenied)
        expect(String(refusal)).toContain('open the logbooks with credentials that their ACL names')
        expect(String(refusal)).toContain(auth.length > 0 ? 'wrong user or password?' : 'no credentials were given')
        expect(String(refusal)).not.toMatch(/lace|guessed/)
      }
    }
    await using again = await open({ auth: [ADA] })
    expect(atomNames(await again.getBook('book'))).toEqual(['one', 'two'])
    await again.destroyBook('book')
  })

  test('keep the ACL they have: it need not be said, and another is refused', async () => {
    const { open } = somewhere()
    const acl = [adas, ...ACL.read]
    await using owner = await open({ auth: [ADA], acl })
    await owner.createBook({ uuid: 'book', name: 'book' })
    // Without a right to more than reading, and without having to say what the ACL is.
    await using reader = await open({ create: false })
    expect(await reader.getBook('book')).toMatchObject({ name: 'book' })
    const path = new LogbookLayout(owner.uri.replace(/^[^/]*\/\/[^/]*|\?.*$/g, ''))
    await using observer = await connected({ auth: [ADA] })
    await observer.create(`${path.shard('gone')}`, null, { acl }).catch(() => undefined)
    const at = new Date()
    const gone = { uuid: 'gone', name: 'gone', meta: {}, createdAt: at, updatedAt: at }
    await observer.create(path.book('gone'), encodeBook({ book: gone, gone: 'mark' }), { acl })
    await observer.create(gonePath(path.book('gone'), 'mark'), null, { acl })
    const listed: string[] = []
    for await (const { uuid } of reader.listBooks()) listed.push(uuid)
    expect(listed).toEqual(['book'])
    await expect(reader.createBook({ uuid: 'no', name: 'no' })).rejects.toThrow(StorageFailure)
    const other = await failureOf(open({ auth: [ADA], acl: ACL.creatorAll }))
    expect(other).toBeInstanceOf(InvalidArgument)
    expect(String(other)).toContain('exists and has another ACL than the given one')
  })

  test('a right that is taken away while they are open is no fault of a job', async () => {
    const { path, open } = somewhere()
    await using observer = await connected({ auth: [ADA] })
    await using persistence = await open({ acl: [adas, ...ACL.open] })
    const log = await persistence.acquire(requestOf('book', 1))
    const paths = await tree(observer, path)
    for (const each of paths) await observer.setACL(each, [adas])
    expect(await failureOf(log.write({ atoms: [atom('one')] }))).toMatchObject({
      code: 'JOBBOARD_STORAGE_FAILURE',
      retryable: true,
    })
  })

  test('take what boards take: a chroot without its slash, times as numbers; not the C client', async () => {
    const parent = namespace('rooted')
    const chroot = parent.slice(1)
    const uri = `zookeeper://${zookeeperHosts}/books?chroot=${chroot}&sessionTimeout=6000&tick=1000`
    await using persistence = await openPersistence(uri)
    await persistence.createBook({ uuid: 'book', name: 'book' })
    await using observer = await connected()
    expect(await observer.exists(`${parent}/books`)).toMatchObject({ version: 0 })
    const refusal = await failureOf(openPersistence(`zookeeper://${zookeeperHosts}/books?client=native`))
    expect(refusal).toBeInstanceOf(InvalidArgument)
    expect(String(refusal)).toContain('remove the parameter client')
  })
})

describe.skipIf(!zookeeperHosts)('logbooks behind TLS', () => {
  let authority: Authority
  let server: SecureZooKeeper
  let files: Readonly<Record<'ca' | 'cert' | 'key', string>>

  beforeAll(async () => {
    authority = await createAuthority()
    server = await startSecureZooKeeper({ authority, clientAuth: 'need', users: { bob: 'builder' } })
    const { cert, key } = await authority.issue({ commonName: 'bob' })
    const file = async (name: string, text: string) => {
      const path = join(authority.folder, name)
      await writeFile(path, text)
      return path
    }
    files = {
      ca: await file('ca.pem', authority.cert),
      cert: await file('cert.pem', cert),
      key: await file('key.pem', key),
    }
  })

  afterAll(async () => {
    await server?.stop()
    await authority?.[Symbol.asyncDispose]()
  })

  test("are opened with certificates and SASL, and are then that user's", async () => {
    const { ca, cert, key } = files
    const uri = `zookeepers://bob:builder@${server.secureHosts}/tls?ca=${ca}&cert=${cert}&key=${key}&login=sasl`
    await using persistence = await openPersistence(uri)
    await persistence.createBook({ uuid: 'book', name: 'book' })
    expect(await persistence.getBook('book')).toMatchObject({ name: 'book' })
    const stranger = await failureOf(openPersistence(`zookeeper://${server.hosts}/tls`))
    expect(stranger).toBeInstanceOf(AccessDenied)
    const without = await failureOf(openPersistence(`zookeepers://${server.secureHosts}/tls?ca=${ca}`))
    expect(without).toMatchObject({ code: 'JOBBOARD_STORAGE_FAILURE', cause: expect.any(TlsFailed) })
    const stray = await failureOf(openPersistence(`zookeeper://${server.hosts}/tls?ca=${ca}`))
    expect(String(stray)).toContain('ca needs TLS; write zookeepers://')
  })
})
