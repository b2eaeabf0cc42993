/** Redis over TLS, with certificates on both sides, and a real server that takes nobody without one. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openBoard } from '../../../src/board/index.ts'
import { createAuthority } from '../../support/certificates.ts'
import { freePort } from '../../support/ports.ts'
import { startRedis } from '../../support/redis.ts'
import { lifeOn } from './life.ts'

test('a board behind TLS is what it is elsewhere, for who has a certificate', async () => {
  await using authority = await createAuthority()
  const file = async (name: string, text: string) => {
    await writeFile(join(authority.folder, name), text)
    return join(authority.folder, name)
  }
  const ca = await file('ca.pem', authority.cert)
  const [server, client] = await Promise.all([
    authority.issue({ commonName: 'localhost', names: 'DNS:localhost,IP:127.0.0.1' }),
    authority.issue({ commonName: 'board' }),
  ])
  const port = await freePort()
  const files = {
    'tls-cert-file': await file('server.pem', server.cert),
    'tls-key-file': await file('server.key', server.key),
    'tls-ca-cert-file': ca,
  }
  const config = { 'tls-port': String(port), 'tls-auth-clients': 'yes', ...files }
  await using _redis = await startRedis({ config })
  const [cert, key] = [await file('client.pem', client.cert), await file('client.key', client.key)]
  const uri = `rediss://127.0.0.1:${port}/0?prefix=board&ca=${ca}`
  await lifeOn(`${uri}&cert=${cert}&key=${key}`)
  // Who names no certificate is not let in.
  const giveUp = AbortSignal.timeout(1_000)
  await expect(openBoard(uri, { signal: giveUp })).rejects.toThrow()
})
