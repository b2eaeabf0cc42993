/** What URIs and options say of who we are: what means nothing is refused, or everything would be everybody's. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { parseUri } from '../../src/core/uri.ts'
import { parseSecurity, type Security, type SecurityOptions } from '../../src/zookeeper/security.ts'

function read(uri: string, options: object = {}): Promise<Security> {
  const given: SecurityOptions = options
  return parseSecurity(parseUri(uri, 'board'), 'board', given)
}

describe('credentials', () => {
  test.each([
    ['zookeeper://ada:@h/b', {}],
    ['zookeeper://ada:@h/b?login=sasl', {}],
    ['zookeeper://:secret@h/b', {}],
    ['zookeeper://h/b', { sasl: '' }],
    ['zookeeper://h/b', { sasl: null }],
    ['zookeeper://h/b', { sasl: { username: 'ada', password: '' } }],
    ['zookeeper://h/b', { auth: null }],
    ['zookeeper://h/b', { auth: [null] }],
    ['zookeeper://h/b', { acl: null }],
    ['zookeeper://h/b', { tls: '' }],
    ['zookeepers://h/b', { tls: { secret: 1 } }],
  ])('of %s and %j are refused', async (uri, options) => {
    const refused = read(uri, options)
    await expect(refused).rejects.toBeInstanceOf(InvalidArgument)
    await expect(refused).rejects.not.toThrow(/:secret/)
  })

  test('that are undefined are not there', async () => {
    const nothing = { auth: undefined, sasl: undefined, tls: undefined, acl: undefined }
    expect(await read('zookeeper://h/b', nothing)).toEqual({ identified: false })
  })

  test('of the options do not take away what the URI names, by being undefined', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-'))
    try {
      const ca = join(folder, 'ca.pem')
      await writeFile(ca, '-----BEGIN CERTIFICATE-----')
      const { tls } = await read(`zookeepers://h/b?ca=${ca}`, { tls: { ca: undefined, servername: 'x' } })
      expect(tls).toEqual({ ca: '-----BEGIN CERTIFICATE-----', servername: 'x' })
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
