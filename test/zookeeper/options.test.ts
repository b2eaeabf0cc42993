import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { InvalidArgument, type TlsOptions, ZooKeeper, type ZooKeeperOptions } from '../../src/zookeeper/index.ts'
import { type Authority, createAuthority } from '../support/certificates.ts'

describe('a client is not made', () => {
  test.each<[Partial<ZooKeeperOptions>, string]>([
    [{ sessionTimeout: '30d' }, 'sessionTimeout'],
    [{ sessionTimeout: 2 ** 31 }, 'sessionTimeout'],
    [{ sessionTimeout: 0 }, 'sessionTimeout'],
    [{ connectTimeout: '30d' }, 'connectTimeout'],
    [{ maxInFlight: 0 }, 'maxInFlight'],
    [{ tls: { cert: 'this is no pem', key: 'nor this' } }, 'tls'],
    [{ tls: { key: 'no key' } }, 'tls'],
    [{ hosts: 'nowhere:port' }, 'nowhere:port'],
    [{ sessionTimeout: Number.NaN }, 'sessionTimeout: NaN is not a duration'],
    [{ connectTimeout: 0 }, 'connectTimeout must be at least 1 ms, got 0 ms'],
    [{ tick: 0 }, 'tick must be at least 1 ms, got 0 ms'],
    [{ maxRequestBytes: -1 }, 'maxRequestBytes must be a whole number from 1'],
    [{ maxReplyBytes: 0 }, 'maxReplyBytes must be a whole number from 1'],
    [{ maxInFlight: 1.5 }, 'maxInFlight must be a whole number from 1'],
    [{ sasl: { username: '', password: 'secret' } }, 'sasl: username must be'],
    [{ sasl: { username: 'bob', password: '' } }, 'sasl: password must be'],
    [{ tls: { ca: '' } }, 'tls: ca is not a PEM'],
    [{ tls: { ca: [] } }, 'tls: ca must not be empty'],
    [{ tls: { ca: Buffer.from('garbage') } }, 'tls: ca is not a PEM'],
    [{ tls: { ca: '/etc/ssl/our-ca.pem' } }, 'await readFile("/etc/ssl/our-ca.pem")'],
    [{ tls: { cert: 'client.pem', key: 'client.key' } }, 'await readFile("client.pem")'],
    [
      { tls: { ca: '-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----' } },
      'tls: ca has no readable certificate',
    ],
  ])('with %j, and the message says what is wrong', refused)

  test.each<[Record<string, unknown>, string]>([
    [{ hosts: undefined }, 'hosts must be a text'],
    [{ hosts: ['127.0.0.1:1'] }, 'hosts must be a text'],
    [{ sessionTimout: '1s' }, 'no option "sessionTimout"; did you mean sessionTimeout?'],
    [{ connectTimeout: null }, 'connectTimeout: null is not a duration'],
    [{ newSession: 'atomatic' }, 'newSession: unknown value "atomatic"; did you mean automatic?'],
    [{ readOnly: 'yes' }, 'readOnly: unknown value "yes"'],
    [{ maxInFlight: '5' }, 'maxInFlight must be a whole number'],
    [{ log: console }, 'log must be a pino logger'],
    [{ log: true }, 'log must be a pino logger'],
    [{ tls: true }, 'tls: the options must be an object'],
    [{ tls: { certificate: 'x' } }, 'tls has no option "certificate"'],
    [{ tls: { ca: 5 } }, 'tls: ca must be a PEM text, or its bytes'],
    [{ sasl: 'bob:secret' }, 'sasl: the options must be an object'],
    [{ sasl: { username: 'bob' } }, 'sasl: password must be'],
    [{ auth: { scheme: 'digest', auth: 'ada:x' } }, 'auth must be a list'],
  ])('from JavaScript with %j', (options, what) => refused(options, what))

  test('without any', () => {
    expect(() => Reflect.construct(ZooKeeper, [])).toThrow(/the options must be an object, as in { hosts/)
  })

  function refused(options: Record<string, unknown>, what: string): void {
    const make = () => Reflect.construct(ZooKeeper, [{ hosts: '127.0.0.1:1', ...options }])
    expect(make).toThrow(InvalidArgument)
    expect(make).toThrow(what)
    expect(String(errorOf(make))).not.toMatch(/\n|secret/)
  }

  function errorOf(make: () => unknown): unknown {
    try {
      return make()
    } catch (error) {
      return error
    }
  }
})

describe('certificates and keys', () => {
  let authority: Authority

  beforeAll(async () => {
    authority = await createAuthority()
  })
  afterAll(() => authority?.[Symbol.asyncDispose]())

  test('go together, and may come in a list', async () => {
    const { cert, key } = await authority.issue({ commonName: 'worker-1' })
    const other = await authority.issue({ commonName: 'worker-2' })
    const make = (tls: TlsOptions) => () => new ZooKeeper({ hosts: '127.0.0.1:1', tls })
    expect(make({ ca: [authority.cert, Buffer.from(authority.cert)], cert, key })().state).toBe('new')
    expect(make({ ca: `a comment\n${authority.cert}\n${cert}` })().state).toBe('new')
    expect(make({ key })).toThrow('key needs its cert')
    expect(make({ cert })).toThrow('cert needs its key')
    expect(make({ cert, key: other.key })).toThrow(/tls: .*mismatch/)
  })
})

test('the longest session that a server could grant may be asked for', () => {
  expect(new ZooKeeper({ hosts: '127.0.0.1:1', sessionTimeout: 2 ** 31 - 1, tls: {} }).state).toBe('new')
})
