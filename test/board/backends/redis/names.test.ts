/** Names, errors and versions: small things that have to be exact. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { OwnerLease } from '../../../../src/board/backends/lease.ts'
import { assertServer } from '../../../../src/board/backends/redis/store/connection.ts'
import { toErrorKind, writesRefusedError } from '../../../../src/board/backends/redis/store/errors.ts'
import { fieldName, RedisLayout, toOrder } from '../../../../src/board/backends/redis/store/layout.ts'
import { IncompatibleVersion, InvalidArgument } from '../../../../src/core/errors.ts'
import { systemClock } from '../../../../src/core/time.ts'

test('all keys of a board have one hash tag, and those of two boards are not alike', () => {
  const [one, other] = [new RedisLayout('a'), new RedisLayout('a:jobs')]
  expect(one.keys('id').every((key) => key.startsWith('{a}:'))).toBe(true)
  expect(one.keys('id')).toHaveLength(36)
  expect(new Set([...one.keys('id'), ...other.keys('id'), one.channel, other.channel]).size).toBe(74)
  for (const prefix of ['', 'a}b', '{', 'a b']) expect(() => new RedisLayout(prefix)).toThrow(InvalidArgument)
})

test('names of fields are as different as the names', () => {
  const names = [
    'a',
    'A',
    '"a"',
    'a","b',
    '\ud800',
    '\udbff',
    '\ufffd',
    'x'.repeat(500),
    `${'x'.repeat(500)}y`,
    '#',
    '[',
    '',
  ]
  expect(new Set(names.map((name) => fieldName(name))).size).toBe(names.length)
  expect(fieldName('a', 'b')).not.toBe(fieldName('a","b'))
  for (const name of names) expect(Buffer.from(fieldName(name)).toString()).toBe(fieldName(name))
})

test('ids have their order in them; one that was made up by hand comes first', () => {
  expect(toOrder('job1795251882096847')).toBe(1795251882096847n)
  expect(toOrder('mine')).toBe(0n)
})

describe('what a server says', () => {
  const reply = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' })
  test.each([
    ["OOM command not allowed when used memory > 'maxmemory'.", 'refused'],
    ['ERR Error running script (call to f_1): @user_script:9: -OOM command not allowed', 'refused'],
    ['MISCONF Redis is configured to save RDB snapshots', 'refused'],
    ["READONLY You can't write against a read only replica. script: 1, on @user_script:5.", 'away'],
    ['LOADING Redis is loading the dataset in memory', 'away'],
    ['Too many Cluster redirections. Last error: ReplyError: MOVED 5 127.0.0.1:7001', 'away'],
    ['NOAUTH Authentication required.', 'denied'],
    ['WRONGPASS invalid username-password pair', 'denied'],
    ["ERR The user executing the script can't run this command or subcommand script: 0, on @user_script:12.", 'denied'],
    ['NOSCRIPT No matching script.', 'forgotten'],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', 'odd'],
  ])('%s', (message, complaint) => {
    expect(toErrorKind(reply(message))).toBe(complaint)
  })

  test('is no word of the server where the connection broke', () => {
    expect(toErrorKind(new Error('connect ECONNREFUSED 127.0.0.1:6379'))).toBeUndefined()
    expect(toErrorKind(new Error('no answer within 3333 ms'))).toBeUndefined()
  })

  test('is reported with what to do about it', () => {
    const told = writesRefusedError('post of job 1 (a)', reply('OOM command not allowed'))
    expect(told).toMatchObject({ code: 'JOBBOARD_WRITES_REFUSED', retryable: true })
    expect(told.message).toMatch(/^post of job 1 \(a\): .*raise maxmemory.*nothing was changed$/)
  })

  test.each([
    ['6.0.16', false],
    ['5.0.14', false],
    ['6.2.0', true],
    ['7.0.15', true],
    ['10.1.0', true],
  ])('version %s', (version, fine) => {
    const say = () => assertServer(`# Server\r\nredis_version:${version}\r\nredis_mode:standalone\r\n`, 'redis://h/0')
    if (fine) say()
    else expect(say).toThrow(IncompatibleVersion)
  })
})

test('a sentinel is no board', () => {
  const info = '# Server\r\nredis_version:7.0.15\r\nredis_mode:sentinel\r\n'
  expect(() => assertServer(info, 'redis://h:26379/0')).toThrow(
    'redis://h:26379/0: this is a sentinel, not a Redis; write redis+sentinel://',
  )
})

describe('a lease', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('lasts from when a request was sent, less a margin, and its end is reported once', () => {
    const over = vi.fn()
    const lease = new OwnerLease({ ttl: 10_000, over })
    expect(lease.isValid()).toBe(false)
    expect(over).not.toHaveBeenCalled()
    const sentAt = systemClock()
    const later = (ms: number) => ({ monotonic: sentAt.monotonic + ms, wall: sentAt.wall + ms })
    lease.extend(sentAt)
    vi.advanceTimersByTime(6_000)
    lease.extend(later(3_000))
    // A request that was sent before says nothing new.
    lease.extend(later(1_000))
    vi.advanceTimersByTime(4_999)
    expect(lease.isValid()).toBe(true)
    vi.advanceTimersByTime(1)
    expect(over).toHaveBeenCalledTimes(1)
    expect(lease.isValid()).toBe(false)
    vi.advanceTimersByTime(60_000)
    expect(over).toHaveBeenCalledTimes(1)
  })

  test('is over where the machine was suspended, whatever the monotonic clock says', () => {
    const over = vi.fn()
    const lease = new OwnerLease({ ttl: 10_000, over })
    lease.extend(systemClock())
    vi.setSystemTime(Date.now() + 8_001)
    expect(lease.isValid()).toBe(false)
    expect(over).toHaveBeenCalledTimes(1)
  })

  test('is not extended by an answer that was on its way while the machine was suspended', () => {
    const over = vi.fn()
    const lease = new OwnerLease({ ttl: 10_000, over })
    lease.extend(systemClock())
    vi.advanceTimersByTime(3_000)
    const sentAt = systemClock()
    vi.setSystemTime(Date.now() + 60_000)
    lease.extend(sentAt)
    expect(lease.isValid()).toBe(false)
    expect(over).toHaveBeenCalledTimes(1)
  })
})
