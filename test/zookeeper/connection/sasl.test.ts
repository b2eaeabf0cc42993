import { describe, expect, test } from 'vitest'
import { ConnectionFault } from '../../../src/zookeeper/connection/faults.ts'
import { DigestMd5 } from '../../../src/zookeeper/connection/sasl.ts'
import { AuthFailed } from '../../../src/zookeeper/protocol/errors.ts'

const CHALLENGE = Buffer.from('realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh",charset=utf-8,algorithm=md5-sess')
const BOB = { username: 'bob', password: 's3cret' }

/** What an independent implementation (Python's hashlib, by the RFC's formulas) makes of the above. */
const RESPONSE = '0ff4deae5f4dccedd5699a49ac75d427'
const RSPAUTH = '418e4a0bfd136bb0851e3742f1c35512'
const LATIN_RESPONSE = '229fdd104b7dde14077f9d7a1ce00b78'

const exchange = (credentials = BOB) => new DigestMd5(credentials, { cnonce: 'OA6MHXh6VqTrRk' })

describe('SASL DIGEST-MD5', () => {
  test('answers a challenge without the password in it, and believes a server that knows it, too', () => {
    const it = exchange()
    const said = String(it.respond(CHALLENGE))
    expect(said).toContain(`response=${RESPONSE}`)
    for (const part of ['username="bob"', 'realm="zk-sasl-md5"', 'nc=00000001', 'qop=auth', 'nonce="OA6MG9tEQGm2hh"']) {
      expect(said).toContain(part)
    }
    expect(said).not.toContain('s3cret')
    expect(() => it.verify(Buffer.from(`rspauth=${RSPAUTH}`))).not.toThrow()
  })

  test.each([`rspauth=${'0'.repeat(32)}`, 'rspauth=', '', 'error="no"'])('does not believe %j', (token) => {
    const it = exchange()
    it.respond(CHALLENGE)
    expect(() => it.verify(Buffer.from(token))).toThrow(ConnectionFault)
    expect(() => exchange().verify(Buffer.from(token))).toThrow(ConnectionFault)
  })

  test('hashes in Latin-1 what fits, and quotes what must be', () => {
    expect(String(exchange({ username: 'zoë', password: 'pässword' }).respond(CHALLENGE))).toContain(LATIN_RESPONSE)
    expect(String(exchange({ username: 'a"b\\c', password: 'x' }).respond(CHALLENGE))).toContain(
      'username="a\\"b\\\\c"',
    )
  })

  test.each([
    '',
    'nonsense',
    'realm="r",nonce="n",algorithm=md5',
    'realm="r",algorithm=md5-sess',
    'realm="r",nonce="n",qop="auth-conf",algorithm=md5-sess',
  ])('refuses a challenge it cannot meet (%j)', (challenge) => {
    expect(() => exchange().respond(Buffer.from(challenge))).toThrow(ConnectionFault)
  })

  test('reads no token that is longer than was agreed, whatever is in it', () => {
    const long = Buffer.concat([CHALLENGE, Buffer.alloc(65_537, ',a="')])
    expect(() => exchange().respond(long)).toThrow('more than 65536')
    expect(() => exchange().respond(long)).toThrow(ConnectionFault)
    const it = exchange()
    it.respond(CHALLENGE)
    expect(() => it.verify(Buffer.concat([Buffer.from(`rspauth=${RSPAUTH},`), Buffer.alloc(65_537)]))).toThrow(
      'more than 65536',
    )
  })

  test('says what is the matter where there is no MD5', () => {
    const md5 = () => {
      throw new Error('error:0308010C:digital envelope routines::unsupported')
    }
    const respond = () => new DigestMd5(BOB, { md5 }).respond(CHALLENGE)
    expect(respond).toThrow(AuthFailed)
    expect(respond).toThrow('FIPS')
  })

  test('chooses a fresh nonce of its own each time', () => {
    const nonces = [1, 2].map(() => /cnonce="([^"]+)"/.exec(String(new DigestMd5(BOB).respond(CHALLENGE)))?.[1])
    expect(nonces[0]).toHaveLength(32)
    expect(nonces[0]).not.toBe(nonces[1])
  })
})
