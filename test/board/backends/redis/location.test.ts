import { describe, expect, test } from 'vitest'
import { parseRedisLocation } from '../../../../src/board/backends/redis/store/location.ts'
import { defaultWindowBytes } from '../../../../src/board/model/posting/posting-codec.ts'
import { InvalidArgument } from '../../../../src/core/errors.ts'
import { parseUri } from '../../../../src/core/uri.ts'

const placeOf = (text: string) => parseRedisLocation(parseUri(text, 'board'))
const refusalOf = (text: string) =>
  placeOf(text).then(
    () => '',
    (error: unknown) => {
      expect(error).toBeInstanceOf(InvalidArgument)
      return String(error)
    },
  )

describe('where a Redis is', () => {
  test('is what the URI says, and what is left out is usual', async () => {
    expect(await placeOf('redis://ada:p%40ss@db.example:6380/3?prefix=mine&ttl=4s')).toEqual({
      uri: 'redis://ada:***@db.example:6380/3?prefix=mine&ttl=4s',
      kind: 'server',
      hosts: [{ host: 'db.example', port: 6380 }],
      socket: undefined,
      master: '',
      db: 3,
      credentials: { user: 'ada', password: 'p@ss' },
      tls: undefined,
      prefix: 'mine',
      ttl: 4_000,
      timeout: 1_333,
      window: 10_000,
      windowBytes: defaultWindowBytes(),
    })
    const usual = {
      hosts: [{ host: '::1', port: 6379 }],
      db: 0,
      prefix: 'taskflow',
      ttl: 10_000,
      credentials: undefined,
    }
    expect(await placeOf('redis://[::1]')).toMatchObject(usual)
    expect(await placeOf('redis://h?ttl=2500')).toMatchObject({ ttl: 2_500 })
    expect((await placeOf('rediss://h/1')).tls).toEqual({})
    expect((await placeOf('rediss://h?servername=other')).tls).toEqual({ servername: 'other' })
  })

  test('is a socket of this machine', async () => {
    expect(await placeOf('redis+unix:/run/my%20redis.sock?db=2&prefix=mine&ttl=4s&timeout=300ms')).toMatchObject({
      ...{ kind: 'server', socket: '/run/my redis.sock', db: 2, prefix: 'mine', timeout: 300 },
    })
    expect(await refusalOf('redis+unix://host/run/redis.sock')).toContain('write redis+unix:/run/redis/redis.sock?db=0')
    expect(await refusalOf('redis+unix:/run/redis.sock?db=x')).toContain('db must be the number of a database')
    expect(await refusalOf('redis://h?db=2')).toContain('unknown parameter "db"')
    expect(await refusalOf('redis://h?ttl=4s&timeout=4s')).toContain(
      'timeout must be at least 100 ms, and shorter than ttl',
    )
  })

  test('is asked of sentinels by a name', async () => {
    const hosts = [
      { host: 'a', port: 26_379 },
      { host: 'b', port: 5 },
    ]
    expect(await placeOf('redis+sentinel://a,b:5/boards/2')).toMatchObject({
      kind: 'sentinel',
      hosts,
      master: 'boards',
      db: 2,
    })
    expect(await placeOf('rediss+sentinel://a/boards')).toMatchObject({ kind: 'sentinel', db: 0, tls: {} })
  })

  test('is in a cluster by any of its nodes', async () => {
    const hosts = [
      { host: 'a', port: 6_379 },
      { host: 'b', port: 7_000 },
    ]
    expect(await placeOf('redis+cluster://a,b:7000')).toMatchObject({ kind: 'cluster', hosts, db: 0, master: '' })
  })

  test.each([
    ['redis://', 'is not a host'],
    ['redis://a,b/0', 'redis+sentinel:// or redis+cluster://'],
    ['redis://a:99999', 'is not a host'],
    ['redis://a/jobs', 'the database must be a number'],
    ['redis://a/0/1', 'the database must be a number'],
    ['redis+cluster://a/1', 'a cluster has one database'],
    ['redis+sentinel://a', 'the name of the master is missing'],
    ['redis://a?ttl=10ms', 'ttl must be at least 1000 ms'],
    ['redis://a?ttl=soon', 'is not a duration'],
    ['redis://a?ca=ca.pem', 'write rediss://'],
    ['rediss://a?ca=/nowhere.pem', 'must name a PEM file that can be read'],
    ['redis://a?sessionTimeout=2s', 'unknown parameter "sessionTimeout"'],
  ])('%s is refused', async (text, says) => {
    expect(await refusalOf(text)).toContain(says)
  })
})
