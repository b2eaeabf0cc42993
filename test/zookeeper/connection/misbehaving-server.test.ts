import { afterEach, describe, expect, test, vi } from 'vitest'
import { IncompatibleVersion } from '../../../src/core/errors.ts'
import { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { JuteWriter } from '../../../src/zookeeper/protocol/jute.ts'
import { failureOf, reaches } from '../clients.ts'
import { ARMING, type Asked, CLOSE_SESSION, event, reply, startFakeServer, welcome } from '../fake-server.ts'

const SYNC = 9
const EXISTS = 3

/** A client whose `sync('/x')` is answered like this, once; everything else is answered as it should be. */
async function answering(answer: (asked: Asked) => void) {
  let answered = false
  const server = await startFakeServer({
    answer: (asked) => {
      if (asked.opcode !== SYNC || answered) return false
      answered = true
      answer(asked)
      return true
    },
  })
  const client = new ZooKeeper({ hosts: server.hosts })
  await client.connect()
  return {
    client,
    [Symbol.asyncDispose]: async () => {
      await client.close()
      await server[Symbol.asyncDispose]()
    },
  }
}

describe('an answer that makes no sense', () => {
  test.each<[string, (asked: Asked) => void]>([
    ['a number that nothing was asked under', ({ xid, send }) => send(reply(xid + 5))],
    ['a header that is cut short', ({ send }) => send(new Uint8Array(3))],
    ['an empty frame', ({ raw }) => raw(new Uint8Array(4))],
    ['a negative length', ({ raw }) => raw(Buffer.from('ffffff00', 'hex'))],
    ['a length of two gigabytes', ({ raw }) => raw(Buffer.from('7fffffff0000', 'hex'))],
    ['a watch event that is cut short', ({ send }) => send(new JuteWriter().int(-1).long(-1n).int(0).int(1).finish())],
    ['a hang-up', ({ hangUp }) => hangUp()],
  ])('(%s) ends the connection, and the next one serves', async (_, answer) => {
    await using lab = await answering(answer)
    const suspended = reaches(lab.client, 'suspended')
    const connected = reaches(lab.client, 'connected')
    expect(await failureOf(lab.client.sync('/x'))).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
    expect((await suspended).reason).toBeInstanceOf(Error)
    await connected
    await lab.client.sync('/x')
  })

  test('(an answer to nothing) ends the connection', async () => {
    await using lab = await answering(({ xid, send }) => {
      send(reply(xid))
      send(reply(xid + 1))
    })
    const suspended = reaches(lab.client, 'suspended')
    await lab.client.sync('/x')
    expect(String((await suspended).reason)).toContain('without a request')
  })

  test('(a body that cannot be read) is unknown to the one who asked, and ends the connection', async () => {
    await using server = await startFakeServer({
      answer: ({ opcode, xid, send }) => {
        if (opcode !== EXISTS) return false
        send(reply(xid, { body: (writer) => writer.int(1) }))
        return true
      },
    })
    await using client = new ZooKeeper({ hosts: server.hosts })
    await client.connect()
    const suspended = reaches(client, 'suspended')
    expect(await failureOf(client.exists('/x'))).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
    await suspended
  })

  test('(an unknown code) is an error like any other', async () => {
    await using lab = await answering(({ xid, send }) => send(reply(xid, { code: -777 })))
    const error = await failureOf(lab.client.sync('/x'))
    expect(error).toMatchObject({ name: 'ZooKeeperError', zkCode: -777, outcome: 'refused' })
    expect(lab.client.state).toBe('connected')
  })
})

describe('a server that will not serve', () => {
  test('because it is older than 3.6 is refused', async () => {
    await using server = await startFakeServer({
      answer: ({ opcode, xid, send, hangUp }) => {
        if (opcode !== ARMING) return false
        send(reply(xid, { code: -6 }))
        hangUp()
        return true
      },
    })
    const client = new ZooKeeper({ hosts: server.hosts })
    const error = await failureOf(client.connect())
    expect(error).toBeInstanceOf(IncompatibleVersion)
    expect(String(error)).toContain(server.hosts)
    expect(client.state).toBe('closed')
  })

  test.each<[string, (asked: Asked) => void]>([
    ['hangs up without a word', ({ hangUp }) => hangUp()],
    ['answers with something else', ({ send }) => send(reply(0, { code: -119 }))],
    ['refuses a new session', ({ send }) => send(new Uint8Array(37))],
    ['says nothing', () => undefined],
  ])('(%s) is not connected to', async (_, attach) => {
    await using server = await startFakeServer({ attach })
    const client = new ZooKeeper({ hosts: server.hosts, connectTimeout: 50 })
    const error = await failureOf(client.connect({ timeout: 200 }))
    expect(error).toMatchObject({ name: 'NotConnected' })
    expect(String(error)).toContain(server.hosts)
  })
})

describe('a server that takes its time', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  test('is waited for as long as wanted, be it a month', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let answer: () => void = () => undefined
    let ask: () => void = () => undefined
    const isAsked = new Promise<void>((resolve) => {
      ask = resolve
    })
    await using server = await startFakeServer({
      attach: (asked) => {
        answer = () => welcome(asked)
        ask()
      },
    })
    await using client = new ZooKeeper({ hosts: server.hosts })
    const connecting = client.connect({ timeout: '30d' })
    await isAsked
    vi.advanceTimersByTime(1_000)
    answer()
    await connecting
    expect(client.state).toBe('connected')
  })
})

describe('a server that falls silent', () => {
  test('is left, also while it is to close a session that was given up', async () => {
    /** Connections on which nothing is answered any more. */
    const silent = new Set<number>()
    const closing: number[] = []
    await using server = await startFakeServer({
      attach: (asked) => asked.connection === 2 || welcome(asked, { timeout: 600 }),
      answer: ({ connection, opcode }) => {
        if (opcode === CLOSE_SESSION && closing.push(connection) === 1) silent.add(connection)
        return silent.has(connection)
      },
    })
    await using client = new ZooKeeper({ hosts: server.hosts, sessionTimeout: 600 })
    await client.connect()
    const again = reaches(client, 'lost').then(() => reaches(client, 'connected'))
    silent.add(1)
    await again
    expect(closing[0]).toBe(3)
  })
})

describe('a server that answers a reconnect with the id of another session', () => {
  test('has lost the session: this is reported before the client is connected, and before anything is sent', async () => {
    const log: string[] = []
    const sessions = [7n, 8n, 8n, 9n]
    await using server = await startFakeServer({
      attach: (asked) => welcome(asked, { session: sessions[asked.connection - 1] ?? 9n }),
      answer: ({ connection, opcode, hangUp }) => {
        log.push(`${connection}: ${opcode === CLOSE_SESSION ? 'close' : 'request'}`)
        if (connection !== 1 || opcode !== SYNC) return false
        hangUp()
        return true
      },
    })
    await using client = new ZooKeeper({ hosts: server.hosts })
    await client.connect()
    const hold = client.holdLease()
    await hold.proven()
    log.length = 0
    const lost = reaches(client, 'lost')
    const again = lost.then(() => reaches(client, 'connected'))
    client.on('state', ({ state, session }) => log.push(`${state} ${session ?? ''}`.trim()))
    client.sync('/x').catch(() => undefined)
    expect((await lost).reason).toMatchObject({ name: 'SessionExpired', outcome: 'unknown' })
    await again
    // The third connection was to close the first session, and is answered with another one, which is nobody's to close here.
    const first = log.findIndex((line) => /^[234]:/.test(line))
    expect(log.filter((line) => !line.includes(': '))).toEqual(['suspended 7', 'lost', 'connecting', 'connected 9'])
    expect(first === -1 || first > log.indexOf('lost')).toBe(true)
    expect(log.filter((line) => /^[23]:/.test(line))).toEqual([])
  })
})

describe('what arrives together', () => {
  test('is seen in the order in which it was sent', async () => {
    await using server = await startFakeServer({
      attach: welcome,
      answer: ({ opcode, xid, raw }) => {
        if (opcode !== SYNC) return false
        const frames = [event('/x/1'), event('/x/2'), reply(xid), event('/x/3'), event('/other'), event('/x/4')]
        raw(Buffer.concat(frames.map((frame) => new JuteWriter().bytes(frame).finish())))
        return true
      },
    })
    await using client = new ZooKeeper({ hosts: server.hosts })
    await client.connect()
    const order: unknown[] = []
    const finished = new Promise<void>((resolve) => {
      const events = (batch: readonly { path: string }[]) => {
        order.push(batch.map(({ path }) => path))
        if (batch.some(({ path }) => path === '/x/4')) resolve()
      }
      void client.watch('/x', { mode: 'recursive' }, { events, gap: () => undefined }).then(async () => {
        await client.sync('/x')
        // However many promises stand between the answer and the one who waits for it.
        for (let hop = 0; hop < 10; hop++) await undefined
        order.push('answer')
      })
    })
    await finished
    expect(order).toEqual([['/x/1', '/x/2'], 'answer', ['/x/3', '/x/4']])
  })
})
