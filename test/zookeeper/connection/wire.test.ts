/** What goes over which connection, and in which order, as a server sees it. */
import { describe, expect, test } from 'vitest'
import { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { failureOf, reaches } from '../clients.ts'
import {
  ARMING,
  type Asked,
  CLOSE_SESSION,
  type FakeServer,
  PING,
  reply,
  startFakeServer,
  welcome,
} from '../fake-server.ts'

const DELETE = 2
const SYNC = 9
const REMOVE_WATCHES = 18
const ADD_WATCH = 106

interface Observed extends FakeServer {
  /** The operations of a connection, in order, without pings. */
  on(connection: number): number[]
}

/** A server that answers everything, and writes down what it was asked. */
async function observed(answer: (asked: Asked) => unknown = () => false): Promise<Observed> {
  const seen: [number, number][] = []
  const server = await startFakeServer({
    // Long enough for nothing to happen by itself.
    attach: (asked) => welcome(asked, { timeout: 60_000 }),
    answer: (asked) => {
      if (asked.opcode !== PING) seen.push([asked.connection, asked.opcode])
      return answer(asked)
    },
  })
  const on = (connection: number) => seen.filter(([which]) => which === connection).map(([, opcode]) => opcode)
  return Object.assign(server, { on })
}

const handler = { events: () => undefined, gap: () => undefined }

describe('a watch that is taken away', () => {
  test('while there is no connection is not taken away again on the next one, which may have a newer one', async () => {
    await using server = await observed(({ opcode, connection, hangUp }) => {
      if (opcode !== SYNC || connection !== 1) return false
      hangUp()
      return true
    })
    await using client = new ZooKeeper({ hosts: server.hosts, sessionTimeout: '60s' })
    await client.connect()
    const watch = await client.watch('/a', { mode: 'recursive' }, handler)
    let removed: Promise<void> | undefined
    let again: Promise<unknown> | undefined
    client.on('state', ({ state }) => {
      if (state === 'suspended') removed = watch.remove()
      if (state === 'connected') again = client.watch('/a', { mode: 'recursive' }, handler)
    })
    const connected = reaches(client, 'connected')
    await failureOf(client.sync('/'))
    await connected
    await Promise.all([removed, again])
    await client.sync('/')
    expect(server.on(2)).toEqual([ARMING, ADD_WATCH, SYNC])
  })

  test('while it is on its way to the server, or there already, leaves nothing behind', async () => {
    let arm: () => void = () => undefined
    let arming: () => void = () => undefined
    const isArming = new Promise<void>((resolve) => {
      arming = resolve
    })
    await using server = await observed(({ opcode, send, xid }) => {
      if (opcode !== ARMING) return false
      arm = () => send(reply(xid))
      arming()
      return true
    })
    await using client = new ZooKeeper({ hosts: server.hosts, sessionTimeout: '60s' })
    const connecting = client.connect()
    // Armed with the connection, and asked for once more behind it: nobody knows yet that there is to be one.
    const watching = client.watch('/a', { mode: 'recursive' }, handler)
    await isArming
    const removed = client.removeWatches('/a')
    arm()
    await Promise.all([connecting, removed, watching])
    await client.sync('/')
    expect(server.on(1)).toEqual([ARMING, REMOVE_WATCHES, ADD_WATCH, REMOVE_WATCHES, SYNC])
  })
})

describe('a client that is closed by a listener for its connection', () => {
  test('does first what waited for the connection', async () => {
    await using server = await observed(({ opcode, connection, hangUp }) => {
      if (opcode !== SYNC || connection !== 1) return false
      hangUp()
      return true
    })
    const client = new ZooKeeper({ hosts: server.hosts, sessionTimeout: '60s' })
    await client.connect()
    let waiting: Promise<unknown> | undefined
    let closed: Promise<void> | undefined
    client.on('state', ({ state }) => {
      if (state === 'suspended') waiting = Promise.all([client.delete('/1'), client.delete('/2')])
      if (state === 'connected') closed = client.close()
    })
    const closing = reaches(client, 'closed')
    await failureOf(client.sync('/'))
    await closing
    await Promise.all([waiting, closed])
    expect(server.on(2)).toEqual([ARMING, DELETE, DELETE, CLOSE_SESSION])
  })

  test('announces no session, and has none', async () => {
    await using server = await observed()
    const client = new ZooKeeper({ hosts: server.hosts })
    const announced: string[] = []
    client.on('session', () => announced.push(client.state))
    client.on('state', ({ state }) => {
      if (state === 'connected') void client.close()
    })
    expect(await failureOf(client.connect())).toMatchObject({ name: 'NotConnected' })
    expect([client.state, announced]).toEqual(['closed', []])
    expect(server.on(1)).toEqual([ARMING, CLOSE_SESSION])
  })
})
