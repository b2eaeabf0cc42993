/** `retryable` decides whether a loop asks again: true only where that may succeed and harms nobody. */
import { describe, expect, test } from 'vitest'
import { type RequestOptions, ZooKeeper, type ZooKeeperOptions } from '../../src/zookeeper/index.ts'
import { expireSession } from '../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { startProxy } from '../support/proxy.ts'
import { connected, failureOf, portOf, reaches, sessionOf } from './clients.ts'
import { type Asked, AUTH, reply, startFakeServer } from './fake-server.ts'

const EXISTS = 3
const SET_DATA = 5

const proxied = () => startProxy({ port: portOf(zookeeperHosts) })

/** A client without a connection, that is not to have one until it is let. */
async function cutOff(options: Partial<ZooKeeperOptions> = {}) {
  const proxy = await proxied()
  const client = await connected({ hosts: proxy.hosts, ...options })
  const suspended = reaches(client, 'suspended')
  proxy.mode = 'refuse'
  proxy.resetAll()
  await suspended
  return {
    proxy,
    client,
    [Symbol.asyncDispose]: async () => {
      await client.close()
      await proxy.close()
    },
  }
}

describe('before it is connected', () => {
  test('a client says that connect() has to be called, and not that waiting helps', async () => {
    const client = new ZooKeeper({ hosts: '127.0.0.1:1' })
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'NotSent', retryable: false })
  })

  test('a connect() that is ended by close() is over; one that found no server may be tried by another client', async () => {
    await using silent = await startFakeServer({ attach: () => undefined })
    const client = new ZooKeeper({ hosts: silent.hosts })
    const connecting = failureOf(client.connect())
    await client.close()
    expect(await connecting).toMatchObject({ name: 'NotConnected', retryable: false })
    const late = new ZooKeeper({ hosts: silent.hosts })
    expect(await failureOf(late.connect({ timeout: 10 }))).toMatchObject({ name: 'NotConnected', retryable: true })
  })
})

describe.skipIf(!zookeeperHosts)('after the end', () => {
  test('nothing is to be asked again of a client that was closed', async () => {
    await using lab = await cutOff()
    const { client } = lab
    const waiting = failureOf(client.setData('/', null))
    await client.close()
    for (const error of [waiting, failureOf(client.exists('/')), failureOf(client.addAuth('digest', 'a:b'))]) {
      expect(await error).toMatchObject({ name: 'NotSent', outcome: 'not-sent', retryable: false })
    }
    expect(await failureOf(client.holdLease().proven())).toMatchObject({ name: 'NotConnected', retryable: false })
  })

  test('nothing of one that has lost its session for good', async () => {
    await using lab = await cutOff({ newSession: 'never' })
    const { client, proxy } = lab
    const waiting = failureOf(client.exists('/'))
    const lost = reaches(client, 'lost')
    const inListener = lost.then(() => failureOf(client.exists('/')))
    await expireSession(zookeeperHosts, sessionOf(client))
    proxy.mode = 'pass'
    await lost
    for (const error of [waiting, inListener, failureOf(client.exists('/'))]) {
      expect(await error).toMatchObject({ name: 'SessionExpired', outcome: 'not-sent', retryable: false })
    }
    expect(await failureOf(client.holdLease().proven())).toMatchObject({ name: 'NotConnected', retryable: false })
  })

  test('a read whose answer is lost with the client neither', async () => {
    await using proxy = await proxied()
    const client = await connected({ hosts: proxy.hosts, sessionTimeout: '2s' })
    proxy.mode = 'blackhole'
    const reading = failureOf(client.exists('/'))
    await client.close()
    expect(await reading).toMatchObject({ name: 'ConnectionLoss', retryable: false })
  })
})

describe.skipIf(!zookeeperHosts)('while there is to be another session', () => {
  test('what waited for the one that is over may be asked of the next, unless it was meant for that one', async () => {
    await using lab = await cutOff()
    const { client, proxy } = lab
    const session = sessionOf(client)
    const waiting = failureOf(client.setData('/', null))
    const bound = failureOf(client.setData('/', null, { session }))
    const asked: Promise<unknown>[] = []
    client.on('state', ({ state }) => {
      if (state === 'lost') asked.push(failureOf(client.exists('/')), failureOf(client.exists('/', { session })))
    })
    const again = reaches(client, 'lost').then(() => reaches(client, 'connected'))
    await expireSession(zookeeperHosts, session)
    proxy.mode = 'pass'
    await again
    const over = { name: 'SessionExpired', outcome: 'not-sent' }
    expect(await Promise.all([waiting, ...asked.slice(0, 1)])).toMatchObject([
      { ...over, retryable: true },
      { ...over, retryable: true },
    ])
    expect(await Promise.all([bound, ...asked.slice(1)])).toMatchObject([
      { ...over, retryable: false },
      { ...over, retryable: false },
    ])
    expect(await failureOf(client.exists('/', { session }))).toMatchObject({ ...over, retryable: false })
  })

  test('a read that lost its connection is harmless, and a write is not', async () => {
    await using proxy = await proxied()
    await using client = await connected({ hosts: proxy.hosts })
    const path = namespace()
    await client.create(path)
    const asks: [string, (options: RequestOptions) => Promise<unknown>][] = [
      ['exists', (options) => client.exists(path, options)],
      ['getData', (options) => client.getData(path, options)],
      ['getChildren', (options) => client.getChildren(path, options)],
      ['getACL', (options) => client.getACL(path, options)],
      ['getEphemerals', (options) => client.getEphemerals(options)],
      ['getAllChildrenNumber', (options) => client.getAllChildrenNumber(path, options)],
      ['multiRead', (options) => client.multiRead([], options)],
      ['sync', (options) => client.sync(path, options)],
      ['setData', (options) => client.setData(path, null, options)],
      ['multi', (options) => client.multi([], options)],
    ]
    proxy.mode = 'swallow-replies'
    const sent = proxy.nextRequest()
    const failures = asks.map(([, ask]) => failureOf(ask({})))
    await sent
    proxy.mode = 'pass'
    proxy.resetAll()
    const told = await Promise.all(failures)
    expect(told.map((error) => Object(error))).toMatchObject(
      asks.map(([name]) => ({ outcome: 'unknown', retryable: name !== 'setData' && name !== 'multi' })),
    )
    expect(String(told[0])).toContain('changes nothing and may be repeated')
    expect(String(told.at(-2))).toContain('it may have happened')
  })

  test('what is too large stays too large', async () => {
    await using client = await connected({ maxRequestBytes: 200 })
    const data = new Uint8Array(300)
    expect(await failureOf(client.setData('/', data))).toMatchObject({ name: 'RequestTooLarge', retryable: false })
  })

  test('so does an answer', async () => {
    await using client = await connected({ maxReplyBytes: 500 })
    await using observer = await connected()
    const path = namespace()
    await observer.create(path, new Uint8Array(1_000))
    expect(await failureOf(client.getData(path))).toMatchObject({ name: 'ConnectionLoss', retryable: false })
  })
})

describe('where the server says that the session is over', () => {
  const EXPIRED = -112

  test.each([
    ['automatic', true],
    ['never', false],
  ] as const)('another one follows, or does not (%s)', async (newSession, retryable) => {
    const answer = ({ opcode, xid, send }: Asked) => {
      if (opcode === SET_DATA) send(reply(xid, { code: EXPIRED }))
      return opcode === SET_DATA
    }
    await using server = await startFakeServer({ answer })
    await using client = await connected({ hosts: server.hosts, newSession })
    const over = { name: 'SessionExpired', outcome: 'refused' }
    expect(await failureOf(client.setData('/', null))).toMatchObject({ ...over, retryable })
    const bound = client.setData('/', null, { session: sessionOf(client) })
    expect(await failureOf(bound)).toMatchObject({ ...over, retryable: false })
  })
})

describe('where who we are is refused', () => {
  test('what was under way is not to be asked again', async () => {
    const identified: Asked[] = []
    const hold = (asked: Asked) => {
      if (asked.opcode === AUTH && asked.connection > 1) identified.push(asked)
      if (asked.opcode !== EXISTS) return asked.opcode === AUTH && asked.connection > 1
      if (asked.connection === 1) asked.hangUp()
      for (const { send, xid } of identified) send(reply(xid, { code: -115 }))
      return true
    }
    await using server = await startFakeServer({ answer: hold })
    await using client = await connected({ hosts: server.hosts, auth: [{ scheme: 'digest', auth: 'ada:secret' }] })
    const again = reaches(client, 'suspended').then(() => reaches(client, 'connected'))
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'ConnectionLoss', retryable: true })
    await again
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'ConnectionLoss', retryable: false })
    expect(await failureOf(client.exists('/'))).toMatchObject({ name: 'AuthFailed', retryable: false })
  })
})
