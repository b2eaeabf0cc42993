/** Identities, and a server that answers to them late, never or in the wrong moment. */
import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { AuthFailed, ZooKeeper, type ZooKeeperOptions } from '../../src/zookeeper/index.ts'
import { failureOf, reaches } from './clients.ts'
import { type Asked, AUTH, reply, startFakeServer, welcome } from './fake-server.ts'

const ADA = { scheme: 'digest', auth: 'ada:lovelace' }
const SYNC = 9
const REFUSED = -115

/** What is done when somebody says who they are on that connection, from 1; answered with success where nothing is said. */
type Script = readonly (((asked: Asked) => unknown) | undefined)[]

const hangUp = ({ hangUp: end }: Asked) => end()
const refuse = ({ send, xid, hangUp: end }: Asked) => {
  send(reply(xid, { code: REFUSED }))
  end()
}

async function scripted(script: Script, options: Partial<ZooKeeperOptions> = {}) {
  const asked: number[] = []
  const server = await startFakeServer({
    answer: (each) => {
      if (each.opcode !== AUTH) return false
      asked.push(each.connection)
      const then = script[each.connection - 1]
      then?.(each)
      return then !== undefined
    },
  })
  const client = new ZooKeeper({ hosts: server.hosts, ...options })
  return {
    client,
    /** Over which connections somebody said who they are. */
    asked,
    [Symbol.asyncDispose]: async () => {
      await client.close()
      await server[Symbol.asyncDispose]()
    },
  }
}

describe('an identity that is added', () => {
  test('is asked for again on the next connection when its answer was lost, and resolves when it is accepted', async () => {
    await using lab = await scripted([hangUp])
    await lab.client.connect()
    await lab.client.addAuth(ADA.scheme, ADA.auth)
    expect(lab.asked).toEqual([1, 2])
  })

  test('is forgotten when the next connection refuses it, and the client goes on without it', async () => {
    await using lab = await scripted([hangUp, refuse])
    await lab.client.connect()
    const states: string[] = []
    lab.client.on('state', ({ state }) => states.push(state))
    const again = reaches(lab.client, 'connected')
    const refusal = await failureOf(lab.client.addAuth('nonsense', 'secret'))
    expect(refusal).toBeInstanceOf(AuthFailed)
    expect(String(refusal)).toMatch(/addAuth nonsense: (?!.*secret)/)
    await again
    await lab.client.sync('/')
    expect(lab.asked).toEqual([1, 2])
    expect(states).not.toContain('lost')
  })

  test('is kept once, however often it is added', async () => {
    await using lab = await scripted([undefined, undefined], { auth: [ADA] })
    await lab.client.connect()
    await Promise.all([lab.client.addAuth(ADA.scheme, ADA.auth), lab.client.addAuth('ip', 'x')])
    await Promise.all([lab.client.addAuth(ADA.scheme, Buffer.from(ADA.auth)), lab.client.addAuth('ip', 'x')])
    expect(lab.asked).toEqual([1, 1])
  })

  test('before connect() is as if it had been given', async () => {
    await using lab = await scripted([refuse])
    await lab.client.addAuth(ADA.scheme, ADA.auth)
    expect(await failureOf(lab.client.connect())).toMatchObject({
      name: 'AuthFailed',
      message: expect.stringContaining('addAuth digest'),
    })
  })

  test('waits no longer than there is a client', async () => {
    const silent = () => undefined
    await using lab = await scripted([silent])
    await lab.client.connect()
    const asked = failureOf(lab.client.addAuth(ADA.scheme, ADA.auth))
    await lab.client.close()
    expect(await asked).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
    expect(await failureOf(lab.client.addAuth('ip', 'x'))).toMatchObject({ name: 'NotSent', outcome: 'not-sent' })
  })

  test.each([undefined, null, 5, {}])('is refused here when it is %j', async (auth) => {
    await using lab = await scripted([])
    expect(() => new ZooKeeper({ hosts: 'a', auth: [{ scheme: 'digest', auth: auth as never }] })).toThrow(
      InvalidArgument,
    )
    await lab.client.connect()
    expect(await failureOf(lab.client.addAuth('digest', auth as never))).toBeInstanceOf(InvalidArgument)
    expect(lab.asked).toEqual([])
  })
})

test('a session that expires while a client says who it is is followed by one in which it says so, too', async () => {
  const asked: number[] = []
  await using server = await startFakeServer({
    attach: (each) => {
      const over = { timeout: 0, session: 0n }
      welcome(each, each.connection === 3 ? over : { session: each.connection < 3 ? 7n : 8n })
    },
    answer: ({ opcode, connection, hangUp: end }) => {
      if (opcode === AUTH) asked.push(connection)
      // The first one breaks when it is asked something, the second one in the middle of saying who one is.
      if (connection !== (opcode === AUTH ? 2 : 1) || (opcode !== AUTH && opcode !== SYNC)) return false
      end()
      return true
    },
  })
  await using client = new ZooKeeper({ hosts: server.hosts, auth: [ADA] })
  await client.connect()
  const lost = reaches(client, 'lost')
  const next = new Promise((resolve) => client.on('session', resolve))
  let waiting: Promise<unknown> | undefined
  client.on('state', ({ state }) => {
    if (state === 'suspended') waiting = failureOf(client.exists('/'))
  })
  expect(await failureOf(client.sync('/'))).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
  expect((await lost).reason).toMatchObject({ name: 'SessionExpired' })
  expect(await waiting).toMatchObject({ name: 'SessionExpired', outcome: 'not-sent' })
  expect(await next).toEqual({ session: 8n, previous: 7n })
  await client.sync('/')
  expect(asked).toEqual([1, 2, 4])
})
