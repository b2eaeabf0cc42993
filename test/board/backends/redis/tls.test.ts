/** Redis over TLS, with certificates on both sides, and a real server that takes nobody without one. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { openBoard } from '../../../../src/board/index.ts'
import { NotConnected } from '../../../../src/core/errors.ts'
import { type Authority, createAuthority } from '../../../support/certificates.ts'
import { freePort } from '../../../support/ports.ts'
import { startRedis } from '../../../support/redis.ts'
import { ServerProgram } from '../../../support/server-program.ts'
import { usual as test, variant } from '../../../variant.ts'
import { exerciseBoard } from './life.ts'

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
  await exerciseBoard(`${uri}&cert=${cert}&key=${key}`)
  // Who names no certificate is not let in.
  const giveUp = AbortSignal.timeout(1_000)
  await expect(openBoard(uri, { signal: giveUp })).rejects.toThrow()
})

variant('sentinels are asked over TLS, and no password goes where a sentinel without it says', async () => {
  await using authority = await createAuthority()
  const ca = join(authority.folder, 'ca.pem')
  await writeFile(ca, authority.cert)
  const heard: Buffer[] = []
  // As anybody on the way could: it answers whatever is asked with a master of its own.
  const forger = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      heard.push(data)
      socket.write('*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n')
    })
  })
  await new Promise<void>((resolve) => forger.listen(0, '127.0.0.1', resolve))
  const { port } = Object(forger.address()) as { port: number }
  const uri = `rediss+sentinel://ada:hunter2@127.0.0.1:${port}/boards/0?ca=${ca}`
  const answered = new Promise<void>((resolve) =>
    forger.once('connection', (socket) => socket.once('data', () => resolve())),
  )
  const giveUp = new AbortController()
  const opening = openBoard(uri, { signal: giveUp.signal })
  await answered
  giveUp.abort(new NotConnected('given up by the test'))
  await expect(opening).rejects.toThrow(NotConnected)
  await new Promise((resolve) => forger.close(resolve))
  // The first byte of a handshake of TLS.
  expect(heard[0]?.[0]).toBe(0x16)
  const all = Buffer.concat(heard).toString('latin1')
  for (const plain of ['sentinel', 'AUTH', 'hunter2']) expect(all.toLowerCase()).not.toContain(plain.toLowerCase())
})

variant('a board on a master that sentinels name over TLS is what it is elsewhere', async () => {
  await using authority = await createAuthority()
  const { ca, files } = await serverFiles(authority)
  const [masterPort, sentinelPort] = [await freePort(), await freePort()]
  const tls = { ...files, 'tls-auth-clients': 'no', 'tls-replication': 'yes' }
  await using _master = await startRedis({ config: { 'tls-port': String(masterPort), ...tls } })
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-sentinel-'))
  const config = join(folder, 'sentinel.conf')
  const lines = [
    ...['port 0', 'bind 127.0.0.1', `tls-port ${sentinelPort}`, `dir ${folder}`],
    ...Object.entries(tls).map(([name, value]) => `${name} ${value}`),
    `sentinel monitor boards 127.0.0.1 ${masterPort} 1`,
  ]
  await writeFile(config, `${lines.join('\n')}\n`)
  const uri = `rediss+sentinel://127.0.0.1:${sentinelPort}/boards/0?prefix=board&ca=${ca}`
  const ready = async () => {
    const board = await openBoard(uri, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
    await board?.close()
    return board !== undefined
  }
  const sentinel = new ServerProgram({
    name: 'Redis Sentinel',
    command: ['redis-server', config, '--sentinel'],
    folder,
    ready,
  })
  await sentinel.start()
  try {
    await exerciseBoard(uri)
  } finally {
    await sentinel.stop()
  }
})

/** Of a server on this machine, for its settings, and of who vouches for it. */
async function serverFiles(authority: Authority): Promise<{ ca: string; files: Readonly<Record<string, string>> }> {
  const { cert, key } = await authority.issue({ commonName: 'localhost', names: 'DNS:localhost,IP:127.0.0.1' })
  const file = async (name: string, text: string) => {
    await writeFile(join(authority.folder, name), text)
    return join(authority.folder, name)
  }
  const ca = await file('ca.pem', authority.cert)
  const files = {
    'tls-cert-file': await file('server.pem', cert),
    'tls-key-file': await file('server.key', key),
    'tls-ca-cert-file': ca,
  }
  return { ca, files }
}
