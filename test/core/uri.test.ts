import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { assertParameters, parseUri, readDurationParameter, redactUri } from '../../src/core/uri.ts'

describe('parseUri', () => {
  test.each([
    ['memory:', { scheme: 'memory', authority: '', path: '' }],
    ['memory:name', { scheme: 'memory', authority: '', path: 'name' }],
    ['directory:./log%20books', { scheme: 'directory', authority: '', path: './log books' }],
    ['ZooKeeper://a:1,[::1]:2/jobs', { scheme: 'zookeeper', authority: 'a:1,[::1]:2', path: '/jobs' }],
  ])('%s', (text, parts) => {
    expect(parseUri(text, 'board')).toMatchObject(parts)
  })

  test('reads parameters', () => {
    const uri = parseUri('zookeeper://h/p?sessionTimeout=10s&chroot=/apps', 'board')
    expect([...uri.parameters]).toEqual([
      ['sessionTimeout', '10s'],
      ['chroot', '/apps'],
    ])
    expect(() => assertParameters(uri, ['sessionTimeout', 'chroot'])).not.toThrow()
    expect(() => assertParameters(uri, ['chroot'])).toThrow(
      /unknown parameter "sessionTimeout"; the parameters are chroot/,
    )
  })

  test.each([
    ['zookeeper://ada:p%2Fw%3A@h:1,i/jobs', { user: 'ada', password: 'p/w:' }],
    ['zookeeper://ada:p@w@h:1,i/jobs', { user: 'ada', password: 'p@w' }],
    ['zookeeper://ada:50%@h:1,i/jobs', { user: 'ada', password: '50%' }],
    ['zookeeper://ada@h:1,i/jobs', { user: 'ada', password: undefined }],
    ['zookeeper://:p@h:1,i/jobs', { user: '', password: 'p' }],
    ['zookeeper://h:1,i/jobs', undefined],
  ])('%s says who one is', (text, credentials) => {
    expect(parseUri(text, 'board')).toMatchObject({ credentials, authority: 'h:1,i', path: '/jobs' })
  })

  test.each(['z://ada:1/secret@h/x', 'z://ada:secret?@h/x', 'z://h/x?a=secret@h'])(
    '%s may be half a password',
    (text) => {
      expect(() => parseUri(text, 'board')).toThrow('there is an @ after the hosts')
      expect(() => parseUri(text, 'board')).not.toThrow('secret')
    },
  )

  test.each(['', 'nothing', '/a/path', '127.0.0.1:2181'])('%j is not a URI', (text) => {
    expect(() => parseUri(text, 'board')).toThrow(InvalidArgument)
    expect(() => parseUri(text, 'board')).toThrow('is not a URI; write zookeeper://127.0.0.1:2181/demo')
    expect(() => parseUri(text, 'persistence')).toThrow('is not a URI; write directory:./logbooks')
  })
})

describe('redactUri', () => {
  test.each([
    ['redis://user:secret@h/0', 'redis://user:***@h/0'],
    ['redis://:secret@h/0', 'redis://:***@h/0'],
    ['postgres://u:se/cr?e#t@h/db', 'postgres://u:***@h/db'],
    ['postgres://u:a@b@h/db', 'postgres://u:***@h/db'],
    ['zookeeper://h:2181/p?auth=u:secret&tick=2s', 'zookeeper://h:2181/p?auth=***&tick=2s'],
    ['zookeepers://h:2281/p?key=k.pem&passphrase=secret', 'zookeepers://h:2281/p?key=k.pem&passphrase=***'],
    ['zookeeper://h:2181/jobs', 'zookeeper://h:2181/jobs'],
    ['zookeeper://u:secret\n@h:2181/jobs', 'zookeeper://u:***@h:2181/jobs'],
    [' zookeeper://u:secret@h:2181/jobs', '***@h:2181/jobs'],
    ['"zookeeper://u:secret@h:2181/jobs"', '***@h:2181/jobs"'],
    ['//u:secret@h:2181/jobs', '***@h:2181/jobs'],
    ['zookeeper://$1:$&secret@h/jobs', 'zookeeper://$1:***@h/jobs'],
  ])('%s', (text, shown) => {
    expect(redactUri(text)).toBe(shown)
  })
})

test('a duration that the timers of drivers and servers cannot wait for is refused with the maximum', () => {
  const uri = parseUri('redis://127.0.0.1/0?ttl=30d&connectTimeout=24d', 'board')
  expect(readDurationParameter(uri, 'connectTimeout')).toBe(24 * 86_400_000)
  expect(() => readDurationParameter(uri, 'ttl')).toThrow('ttl must be at most 2147483647 ms (24 days), got 30d')
})
