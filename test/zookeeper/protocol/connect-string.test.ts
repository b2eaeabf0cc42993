import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { formatEndpoint, parseConnectString } from '../../../src/zookeeper/protocol/connect-string.ts'

describe('a connect string', () => {
  test('names servers, ports and a chroot', () => {
    expect(parseConnectString('a:1, b ,[::1]:3/x/y')).toEqual({
      endpoints: [
        { host: 'a', port: 1 },
        { host: 'b', port: 2181 },
        { host: '::1', port: 3 },
      ],
      chroot: '/x/y',
    })
  })

  test.each(['a', 'a/'])('%j has no chroot', (text) => {
    expect(parseConnectString(text).chroot).toBe('')
  })

  test.each([
    '',
    ',',
    'a,',
    'a:',
    'a:0',
    'a:65536',
    'a:x',
    ':1',
    'u@a:1',
    'a:1/x/',
    'a:1//',
    'a b:1',
    'a:1/app,b:1/app',
    'a:1/x,b',
    'a:1/x y',
  ])('%j is refused', (text) => {
    expect(() => parseConnectString(text)).toThrow(InvalidArgument)
  })

  test.each([
    'zookeeper://ada:secret@a:1/x',
    'ada:secret@a:1/x',
    'a:1,ada:secret@b:1',
    'ada:sec/ret@b:1',
    'ada:12/secret//@b:1',
  ])('with a password is refused, and does not show it: %s', (text) => {
    const parse = () => parseConnectString(text)
    expect(parse).toThrow(/auth or sasl/)
    expect(parse).not.toThrow(/sec|ret/)
  })

  test('may have an @ in its chroot', () => {
    expect(parseConnectString('a:1/of@ada').chroot).toBe('/of@ada')
  })

  test('is written as it is read', () => {
    for (const text of ['a:1', '[::1]:2181'])
      expect(parseConnectString(text).endpoints.map(formatEndpoint)).toEqual([text])
  })
})
