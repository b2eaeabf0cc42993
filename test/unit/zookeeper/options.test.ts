import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { ZooKeeper, type ZooKeeperOptions } from '../../../src/zookeeper/index.ts'

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
  ])('with %j, and the message says what is wrong', (options, what) => {
    const make = () => new ZooKeeper({ hosts: '127.0.0.1:1', ...options })
    expect(make).toThrow(InvalidArgument)
    expect(make).toThrow(what)
  })
})

test('the longest session that a server could grant may be asked for', () => {
  expect(new ZooKeeper({ hosts: '127.0.0.1:1', sessionTimeout: 2 ** 31 - 1, tls: {} }).state).toBe('new')
})
