/** Certain writes that are given up, or whose id was there before: nobody else's znode is taken, and nothing spins. */
import { describe, expect, test } from 'vitest'
import {
  ConnectionLoss,
  type CreateMode,
  idempotentDelete,
  protectedCreate,
  type ZooKeeper,
} from '../../../src/zookeeper/index.ts'
import { expireSession } from '../../support/expire-session.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { failureOf, reaches, sessionOf } from '../clients.ts'
import { type LostReplyServer, losing, lost, nextChange, startLostReplyServer } from './lost-answers.ts'

const SEQUENTIAL = { sequential: true } as const
const ELECTION = { ephemeral: true, sequential: true } as const

/** As many round trips as a clean-up takes, and more: each is answered behind one of it. */
async function cleanedUp({ client }: LostReplyServer): Promise<void> {
  for (let round = 0; round < 8; round++) await client.sync('/')
}

/** Begins a create that happens, and gives it up before it is answered; the znode it made. */
async function evictPosting(lab: LostReplyServer, path: string, mode: CreateMode & { id: string }): Promise<string> {
  const { client, proxy, observer } = lab
  const before = (await observer.getChildren(lab.path)).names
  const made = await nextChange(lab)
  proxy.mode = 'swallow-replies'
  const enough = new AbortController()
  const creating = failureOf(protectedCreate(client, path, null, { ...mode, signal: enough.signal }))
  await made.happened
  const [name] = (await observer.getChildren(lab.path)).names.filter((each) => !before.includes(each))
  enough.abort(new Error('enough'))
  await creating
  const again = reaches(client, 'connected')
  proxy.mode = 'pass'
  proxy.resetAll()
  await again
  return `${lab.path}/${name}`
}

/** The same client, which ends what would ask for ever. */
function bounded(client: ZooKeeper): { readonly client: ZooKeeper; readonly asked: () => number } {
  let asked = 0
  const sync: ZooKeeper['sync'] = (...args) => {
    asked++
    return asked > 1_000 ? Promise.reject(new Error('it asks for ever')) : client.sync(...args)
  }
  const of = (name: string | symbol) => (name === 'sync' ? sync : Reflect.get(client, name))
  const get = (_: ZooKeeper, name: string | symbol) => {
    const found: unknown = of(name)
    return typeof found === 'function' ? found.bind(client) : found
  }
  return { client: new Proxy(client, { get }), asked: () => asked }
}

describe.skipIf(!zookeeperHosts)('a protected create that is given up', () => {
  test('leaves alone what was there before under the same id', async () => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const earlier = await protectedCreate(client, `${path}/x`, null, { id: 'mine' })
    const signal = AbortSignal.abort(new Error('enough'))
    await failureOf(protectedCreate(client, `${path}/x`, null, { id: 'mine', signal, session: sessionOf(client) }))
    await cleanedUp(lab)
    expect(await observer.exists(earlier.path)).toEqual(earlier.stat)
  })

  test('and of several of one id takes away the very one that it made', async () => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const earlier = await protectedCreate(client, `${path}/n-`, null, { id: 'mine', ...SEQUENTIAL })
    const made = await evictPosting(lab, `${path}/n-`, { id: 'mine', ...SEQUENTIAL })
    await cleanedUp(lab)
    expect(made).toMatch(/_c_mine-n-0000000001$/)
    expect(await observer.exists(made)).toBeUndefined()
    expect(await observer.exists(earlier.path)).toEqual(earlier.stat)
  })

  test('takes no other id for its own that begins with it', async () => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const longer = async () => protectedCreate(observer, `${path}/`, null, { id: 'w-2', ...SEQUENTIAL })
    const writing = await losing(
      lab,
      'the request',
      (failing) => protectedCreate(failing, `${path}/`, null, { id: 'w', ...SEQUENTIAL }),
      longer,
    )
    const [created] = await Promise.all(writing)
    expect(created?.path).toBe(`${path}/_c_w-0000000001`)
    expect((await client.getChildren(path)).names.sort()).toEqual(['_c_w-0000000001', '_c_w-2-0000000000'])
  })

  test.each([ELECTION, SEQUENTIAL, {}])('because its session is lost, ends with that (%j)', async (mode) => {
    await using lab = await startLostReplyServer()
    const { client, proxy, observer, path } = lab
    const session = sessionOf(client)
    const over = new AbortController()
    client.on('state', ({ state, reason }) => {
      if (state === 'lost') over.abort(reason)
    })
    const suspended = reaches(client, 'suspended')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await suspended
    const again = reaches(client, 'lost').then(() => reaches(client, 'connected'))
    const watched = bounded(client)
    const options = { ...mode, session, signal: over.signal }
    const creating = failureOf(protectedCreate(watched.client, `${path}/n-`, null, options))
    await expireSession(zookeeperHosts, session)
    proxy.mode = 'pass'
    await again
    expect(await creating).toBe(over.signal.reason)
    await cleanedUp(lab)
    expect(watched.asked()).toBeLessThan(10)
    expect((await observer.getChildren(path)).names).toEqual([])
  })
})

describe.skipIf(!zookeeperHosts)('a protected create', () => {
  test('does not take the znode of an earlier session for its own', async () => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const theirs = () => protectedCreate(observer, `${path}/n-`, null, { id: 'host', ...ELECTION })
    const { path: made, stat } = await lost(
      lab,
      'the request',
      (failing) => protectedCreate(failing, `${path}/n-`, null, { id: 'host', ...ELECTION }),
      theirs,
    )
    expect(stat.ephemeralOwner).toBe(sessionOf(client))
    expect(made).toMatch(/0000000001$/)
  })

  test('that looks at more than can be read stays unknown', async () => {
    await using lab = await startLostReplyServer({ maxReplyBytes: 2_000 })
    const { observer, path } = lab
    await Promise.all(Array.from({ length: 200 }, (_, n) => observer.create(`${path}/a-long-name-${n}`)))
    const creating = lost(lab, 'the answer', (failing) => protectedCreate(failing, `${path}/n-`, null, SEQUENTIAL))
    const unread = { name: 'ConnectionLoss', path, retryable: false }
    expect(await failureOf(creating)).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown', cause: unread })
  })
})

describe.skipIf(!zookeeperHosts)('a caller that gives it up', () => {
  test('may do so with any error, also with one that says what became of another request', async () => {
    await using lab = await startLostReplyServer()
    const { client, path } = lab
    const reason = new ConnectionLoss('of another', { retryable: true })
    const watched = bounded(client)
    const enough = new AbortController()
    const deleting = failureOf(idempotentDelete(watched.client, path, { signal: enough.signal }))
    enough.abort(reason)
    expect(await deleting).toBe(reason)
    expect(watched.asked()).toBe(1)
  })
})
