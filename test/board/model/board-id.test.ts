/** One board has one id, however it is written. */
import { expect, test } from 'vitest'
import { boardId } from '../../../src/board/internal.ts'

const SAME: readonly (readonly [id: string, ...uris: string[]])[] = [
  [
    'zookeeper://zk1:2181,zk2:2181/demo',
    'zookeeper://zk1,zk2/demo',
    'zookeeper://ada:secret@ZK2:2181,zk1:2181/demo/?sessionTimeout=5s&encoding=json',
    'zookeeper://ada:***@zk2,zk1/demo',
    'zookeepers://zk1,zk2/demo?ca=ca.pem',
  ],
  [
    'zookeeper://[::1]:2181/apps/taskflow/jobs',
    'zookeeper://[::1]?chroot=apps/',
    'zookeeper://[::1]:2181/?chroot=/apps',
  ],
  [
    'postgres://db:5432/app?schema=jobboard&board=default',
    'postgres://db/app',
    'postgresql://ada:secret@db:5432/app?sslmode=require&board=default&window=10',
    'postgres:///app',
    'postgres://ada@db',
  ],
  ['postgres://other:7/x?schema=s&board=b', 'postgres://other:7/x?board=b&schema=s'],
  ['redis://r:6379/0?prefix=taskflow', 'redis://r', 'rediss://:secret@r:6379/0?ttl=5s', 'redis://r/?window=10'],
  ['redis+sentinel://a:26379,b:1/main/2?prefix=p', 'redis+sentinel://b:1,a/main/2?prefix=p'],
  ['redis+cluster://a:6379/0?prefix=taskflow', 'rediss+cluster://a'],
  ['memory:', 'memory:'],
  ['memory:name', 'memory:name'],
]

test.each(SAME)('%s', (id, ...uris) => {
  const environment = { PGHOST: 'db', PGDATABASE: 'app' }
  expect(uris.map((uri) => boardId(uri, environment))).toEqual(uris.map(() => id))
})

test('boards that differ in the server, the database, the path or a name differ in their ids', () => {
  const uris = [
    ...['zookeeper://a/x', 'zookeeper://b/x', 'zookeeper://a:1/x', 'zookeeper://a/y', 'zookeeper://a/x?chroot=/y'],
    ...['postgres://a/x', 'postgres://b/x', 'postgres://a/y', 'postgres://a/x?board=b', 'postgres://a/x?schema=s'],
    ...[
      'redis://a',
      'redis://a/1',
      'redis://b',
      'redis://a?prefix=p',
      'redis+unix:/a.sock',
      'redis+unix:/a.sock?db=1',
      'redis+unix:/b.sock',
      'redis+cluster://a',
      'redis+sentinel://a/m',
    ],
    ...['memory:', 'memory:a', 'memory:b'],
  ]
  expect(new Set(uris.map((uri) => boardId(uri))).size).toBe(uris.length)
})

test('no credentials are in it', () => {
  for (const scheme of ['zookeeper', 'postgres', 'redis'])
    for (const who of ['ada:secret', ':secret', 'secret'])
      expect(boardId(`${scheme}://${who}@host/1?password=secret`, { PGDATABASE: 'x' })).not.toContain('secret')
})
