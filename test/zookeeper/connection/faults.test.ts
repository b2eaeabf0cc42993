import { describe, expect, test } from 'vitest'
import { InvalidArgument, NotConnected } from '../../../src/core/errors.ts'
import {
  ConnectionFault,
  HangUpDetector,
  HungUp,
  TlsFailed,
  TlsFailureDetector,
  toFaultKind,
} from '../../../src/zookeeper/connection/faults.ts'
import { AuthFailed, SessionExpired } from '../../../src/zookeeper/protocol/errors.ts'
import { MalformedBytes } from '../../../src/zookeeper/protocol/jute.ts'

const hungUp = () => new NotConnected('a:1: hung up', { cause: new ConnectionFault('hung-up', 'hung up') })

describe('faults', () => {
  test.each<[Error, string]>([
    [hungUp(), 'hung-up'],
    [new NotConnected('x', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }), 'unreachable'],
    [new NotConnected('x'), 'refused'],
    [new MalformedBytes('x'), 'malformed'],
    [new AuthFailed('x'), 'auth'],
    [new SessionExpired('x'), 'expired'],
    [new InvalidArgument('x'), 'refused'],
    [new TypeError('x'), 'defect'],
  ])('(%s) are of a kind', (error, kind) => {
    expect(toFaultKind(error)).toBe(kind)
  })
})

describe('servers that do not speak TLS as this client does', () => {
  const noTls = () => new NotConnected('a:1: no TLS', { cause: new ConnectionFault('tls', 'no TLS') })

  test('are final when it was all of them, twice', () => {
    const failures = new TlsFailureDetector()
    const judged = Array.from({ length: 4 }, () => failures.classify(noTls(), { servers: 2 }))
    expect(judged.map((error) => error instanceof TlsFailed)).toEqual([false, false, false, true])
    expect(judged[3]).toMatchObject({ message: 'a:1: no TLS', retryable: false })
  })

  test('are not where one does something else, or has served before', () => {
    const failures = new TlsFailureDetector()
    for (let time = 0; time < 10; time++) {
      const error = time % 2 === 0 ? noTls() : hungUp()
      expect(failures.classify(error, { servers: 1 })).toBe(error)
    }
    failures.served()
    for (let time = 0; time < 10; time++)
      expect(failures.classify(noTls(), { servers: 1 })).not.toBeInstanceOf(TlsFailed)
  })
})

describe('servers that hang up without a word', () => {
  const once = { servers: 1, resuming: false }

  test('are explained when they do so again and again', () => {
    const hangUps = new HangUpDetector()
    for (let time = 0; time < 2; time++) expect(hangUps.classify(hungUp(), once)).not.toBeInstanceOf(HungUp)
    const explained = hangUps.classify(hungUp(), once)
    expect(explained).toBeInstanceOf(HungUp)
    expect(explained.message).toContain('maxClientCnxns')
    expect(explained.message).not.toContain('newest transaction')
    expect(hangUps.classify(hungUp(), { ...once, resuming: true }).message).toContain('newest transaction')
  })

  test('are not, when others do something else, or serve, in between', () => {
    const hangUps = new HangUpDetector()
    for (let time = 0; time < 10; time++) {
      expect(hangUps.classify(hungUp(), once)).not.toBeInstanceOf(HungUp)
      if (time % 2 === 0) hangUps.served()
      else hangUps.classify(new NotConnected('refused'), once)
    }
  })

  test('are given two rounds where there are many', () => {
    const hangUps = new HangUpDetector()
    const judged = Array.from({ length: 10 }, () => hangUps.classify(hungUp(), { servers: 5, resuming: false }))
    expect(judged.map((error) => error instanceof HungUp)).toEqual([...Array(9).fill(false), true])
  })
})
