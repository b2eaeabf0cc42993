import { type Logger, pino } from 'pino'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { NotConnected } from '../../src/core/errors.ts'
import { AuthFailed, NoAuth, ZooKeeper, type ZooKeeperOptions } from '../../src/zookeeper/index.ts'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { expireSession } from '../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { startProxy } from '../support/proxy.ts'
import { type SecureZooKeeper, startSecureZooKeeper } from '../support/zookeeper-secure.ts'
import { usual as test, variant } from '../variant.ts'
import { connected, failureOf, portOf, reaches, sessionOf, text } from './clients.ts'

const BOB = { username: 'bob', password: 's3cret "and\\more' }
const USERS = { bob: 's3cret \\"and\\\\more' }
const ALL = 31

/** Why TLS fails for a client with these options; it does not try for as long as it may. */
async function refusal(options: ZooKeeperOptions): Promise<string> {
  const client = new ZooKeeper(options)
  const error = await failureOf(client.connect({ timeout: '1m' }))
  expect(error).toMatchObject({ name: 'TlsFailed', code: 'JOBBOARD_ZOOKEEPER_TLS_FAILED', retryable: false })
  expect(error).toBeInstanceOf(NotConnected)
  expect(client.counters().faults.tls).toBeGreaterThanOrEqual(3)
  expect(client.state).toBe('closed')
  expect(String(error)).not.toContain('\n')
  return String(error)
}

describe.skipIf(!zookeeperHosts)('security', () => {
  let authority: Authority
  let server: SecureZooKeeper

  beforeAll(async () => {
    authority = await createAuthority()
    server = await startSecureZooKeeper({ authority, clientAuth: 'none', users: USERS })
  })

  afterAll(async () => {
    await server?.stop()
    await authority?.[Symbol.asyncDispose]()
  })

  describe('TLS', () => {
    test('takes a server whose certificate is signed by who was named, for the host that was named', async () => {
      await using client = await connected({ hosts: server.secureHosts, tls: { ca: authority.cert } })
      const path = namespace()
      const data = new Uint8Array(300_000).fill(7)
      await Promise.all([client.create(path, data), client.setData(path, data), client.sync(path)])
      expect((await client.getData(path)).stat).toMatchObject({ version: 1, dataLength: 300_000 })
    })

    variant('refuses a server whose certificate is of another authority', async () => {
      await using other = await createAuthority()
      const message = await refusal({ hosts: server.secureHosts, tls: { ca: other.cert } })
      expect(message).toContain(`${server.secureHosts}: the server's certificate is not trusted`)
      expect(message).toContain('give the authority that signed it as ca')
      expect(await refusal({ hosts: server.secureHosts, tls: {} })).toContain('is not trusted')
    })

    variant('refuses a certificate for another host, unless that name is expected', async () => {
      const hosts = `127.0.0.1:${server.securePort}`
      expect(await refusal({ hosts, tls: { ca: authority.cert } })).toContain('127.0.0.1')
      const elsewhere = { ca: authority.cert, servername: 'elsewhere.example' }
      expect(await refusal({ hosts: server.secureHosts, tls: elsewhere })).toContain('elsewhere.example')
      await using named = await connected({ hosts, tls: { ca: authority.cert, servername: 'localhost' } })
      await using trusting = await connected({ hosts, tls: { rejectUnauthorized: false } })
      expect([named.state, trusting.state]).toEqual(['connected', 'connected'])
    })

    variant('shows a certificate where one is asked for, and without it has no session', async () => {
      await using strict = await startSecureZooKeeper({ authority, clientAuth: 'need', users: USERS })
      const { secureHosts: hosts } = strict
      const ca = authority.cert
      expect(await refusal({ hosts, tls: { ca } })).toMatch(
        /bad certificate\); it may want a certificate .*: cert and key/,
      )
      const certificate = await authority.issue({ commonName: 'worker-1' })
      await using client = await connected({ hosts, tls: { ca, ...certificate } })
      expect(await client.whoAmI()).toContainEqual({ scheme: 'x509', id: 'CN=worker-1' })
    })

    test('is spoken by both sides, or the error says which one does not', async () => {
      expect(await refusal({ hosts: server.secureHosts })).toContain(
        `${server.secureHosts}: it speaks TLS on this port, and this client does not: give tls, or zookeepers://`,
      )
      expect(await refusal({ hosts: server.hosts, tls: { ca: authority.cert } })).toContain(
        `${server.hosts}: it does not speak TLS on this port; use its secure port, or turn TLS off`,
      )
    })

    test('goes on with the session when the connection breaks', async () => {
      await using proxy = await startProxy({ port: server.securePort })
      const tls = { ca: authority.cert, servername: 'localhost' }
      await using client = await connected({ hosts: proxy.hosts, tls })
      const id = sessionOf(client)
      const again = reaches(client, 'suspended').then(() => reaches(client, 'connected'))
      proxy.resetAll()
      await again
      await client.sync('/')
      expect(sessionOf(client)).toBe(id)
    })
  })

  describe('SASL', () => {
    test('proves who one is, on every connection', async () => {
      await using proxy = await startProxy({ port: server.port })
      await using client = await connected({ hosts: proxy.hosts, sasl: BOB })
      await using stranger = await connected({ hosts: server.hosts })
      expect(await client.whoAmI()).toContainEqual({ scheme: 'sasl', id: 'bob' })
      const path = namespace()
      const acl = [{ permissions: ALL, scheme: 'sasl', id: 'bob' }]
      await client.create(path, Buffer.from('mine'), { acl })
      expect(await failureOf(stranger.getData(path))).toBeInstanceOf(NoAuth)

      const id = sessionOf(client)
      const suspended = reaches(client, 'suspended')
      proxy.resetAll()
      await suspended
      expect(text((await client.getData(path)).data)).toBe('mine')
      expect(sessionOf(client)).toBe(id)
    })

    test('with a password that is not accepted is final, and says so', async () => {
      const client = new ZooKeeper({ hosts: server.hosts, sasl: { ...BOB, password: 'wrong-password' } })
      const states: string[] = []
      client.on('state', ({ state }) => states.push(state))
      const error = await failureOf(client.connect())
      expect(error).toBeInstanceOf(AuthFailed)
      expect(String(error)).toContain('"bob"')
      expect(String(error)).not.toContain('wrong-password')
      expect(states).toEqual(['connecting', 'lost', 'closed'])
      expect(client.counters().faults).toEqual({ auth: 1 })
    })

    test('is not over because one server has none', async () => {
      await using bare = await startProxy({ port: portOf(zookeeperHosts) })
      await using client = new ZooKeeper({ hosts: bare.hosts, sasl: BOB })
      const connecting = client.connect({ timeout: '1m' })
      const again = async () => {
        while (bare.accepted < 2) await bare.nextRequest()
      }
      // Nobody connects a second time who took the first one for final.
      await Promise.race([connecting, again()])
      expect(client.counters().faults.auth).toBeGreaterThan(0)
      client.updateHosts(server.hosts)
      await connecting
      expect(await client.whoAmI()).toContainEqual({ scheme: 'sasl', id: 'bob' })
    })

    variant('is demanded by servers that are configured to', async () => {
      await using strict = await startSecureZooKeeper({
        authority,
        clientAuth: 'none',
        users: USERS,
        config: { sessionRequireClientSASLAuth: true },
      })
      await using client = await connected({ hosts: strict.hosts, sasl: BOB })
      expect(client.state).toBe('connected')
      expect(await failureOf(new ZooKeeper({ hosts: strict.hosts }).connect())).toBeInstanceOf(AuthFailed)
    })
  })
})

describe.skipIf(!zookeeperHosts)('digest auth', () => {
  const digest = { scheme: 'digest', auth: 'ada:lovelace' }
  const mine = [{ permissions: ALL, scheme: 'auth', id: '' }]

  test('is given again on every connection, before anything else', async () => {
    await using proxy = await startProxy({ port: Number(zookeeperHosts.split(':')[1]) })
    await using client = await connected({ hosts: proxy.hosts, auth: [digest] })
    await using stranger = await connected()
    const path = namespace()
    await client.create(path, Buffer.from('mine'), { acl: mine })
    expect(await failureOf(stranger.getData(path))).toBeInstanceOf(NoAuth)
    for (let reset = 0; reset < 3; reset++) {
      const suspended = reaches(client, 'suspended')
      proxy.resetAll()
      await suspended
      expect(text((await client.getData(path)).data)).toBe('mine')
    }
  })

  test('may come later, in the middle of everything else', async () => {
    await using owner = await connected({ auth: [digest] })
    await using client = await connected()
    const path = namespace()
    await owner.create(path, Buffer.from('mine'), { acl: mine })
    // Its answer overtakes those of the requests before it.
    const before = Array.from({ length: 100 }, (_, index) => client.create(`${path}-${index}`))
    await client.addAuth(digest.scheme, Buffer.from(digest.auth))
    await Promise.all(before)
    expect(text((await client.getData(path)).data)).toBe('mine')
  })

  test('of an unknown scheme is refused, and not given again', async () => {
    await using client = await connected()
    const again = reaches(client, 'suspended').then(() => reaches(client, 'connected'))
    expect(await failureOf(client.addAuth('no-such-scheme', 'x'))).toBeInstanceOf(AuthFailed)
    await again
    await client.sync('/')
    const doomed = new ZooKeeper({ hosts: zookeeperHosts, auth: [{ scheme: 'no-such-scheme', auth: 'x' }] })
    expect(await failureOf(doomed.connect())).toBeInstanceOf(AuthFailed)
  })
})

describe.skipIf(!zookeeperHosts)('secrets', () => {
  test('are in no log and in no error', async () => {
    const written: string[] = []
    const log: Logger = pino({ level: 'trace' }, { write: (line: string) => written.push(line) })
    const errors: unknown[] = []
    const auth = [{ scheme: 'digest', auth: 'ada:lovelace' }]
    const client = await connected({ log, auth })
    client.on('state', ({ reason }) => errors.push(reason))
    const session = sessionOf(client)
    const path = namespace()
    await client.create(path, Buffer.from('a payload'), { ephemeral: true })
    const again = reaches(client, 'lost').then(() => reaches(client, 'connected'))
    await expireSession(zookeeperHosts, session)
    await again
    errors.push(await failureOf(client.sync(path, { session })))
    errors.push(await failureOf(client.create('/none/none', Buffer.from('a payload'))))
    await client.close()

    const said = [...written, ...errors.map((error) => `${String(error)} ${JSON.stringify(error)}`)].join('\n')
    expect(said).toContain(path)
    expect(said).toContain('lost')
    const unsigned = BigInt.asUintN(64, session)
    for (const secret of [String(session), unsigned.toString(16), 'lovelace', 'a payload']) {
      expect(said).not.toContain(secret)
    }
  })
})
