/** TLS as the URI asks for it, with a real server: refused without, and with a server that cannot prove who it is. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { parseUri } from '../../src/core/uri.ts'
import { PostgresPool, parsePostgresLocation } from '../../src/postgres/index.ts'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

let folder: string
let authority: Authority
let stranger: Authority
let server: PostgresServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'jobboard-tls-'))
  authority = await createAuthority()
  stranger = await createAuthority()
  const { cert, key } = await authority.issue({ commonName: 'localhost' })
  await writeFile(join(folder, 'server.pem'), cert)
  await writeFile(join(folder, 'server.key'), key, { mode: 0o600 })
  await writeFile(join(folder, 'ca.pem'), authority.cert)
  await writeFile(join(folder, 'stranger.pem'), stranger.cert)
  await chmod(folder, 0o755)
  const [certFile, keyFile] = [join(folder, 'server.pem'), join(folder, 'server.key')]
  server = await startPostgres({ config: { ssl: 'on', ssl_cert_file: certFile, ssl_key_file: keyFile } })
})

afterAll(async () => {
  await server?.stop()
  await authority?.[Symbol.asyncDispose]()
  await stranger?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

afterEach(() => vi.unstubAllEnvs())

async function isEncrypted(parameters: string, host = 'localhost'): Promise<unknown> {
  const uri = `${server.uri.replace('127.0.0.1', host)}?${parameters}`
  const pool = new PostgresPool(parsePostgresLocation(parseUri(uri, 'persistence')))
  try {
    const { rows } = await pool.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()', [])
    return rows[0]?.['ssl']
  } finally {
    await pool.close()
  }
}

test('it is as the URI says', async () => {
  expect(await isEncrypted('')).toBe(false)
  expect(await isEncrypted('sslmode=require')).toBe(true)
  expect(await isEncrypted(`sslmode=verify-full&sslrootcert=${folder}/ca.pem`)).toBe(true)
})

test('it is as the environment says where the URI says nothing, and never without when it was asked for', async () => {
  // Before the environment is another: it is also that of the programs which ask whether it runs.
  await using plain = await startPostgres()
  vi.stubEnv('PGSSLMODE', 'verify-full')
  vi.stubEnv('PGSSLROOTCERT', join(folder, 'ca.pem'))
  expect(await isEncrypted('')).toBe(true)
  await expect(isEncrypted('', '127.0.0.1')).rejects.toThrow(/does not match|altnames/)
  const pool = new PostgresPool(parsePostgresLocation(parseUri(plain.uri, 'persistence')))
  await expect(pool.query('SELECT 1', [])).rejects.toThrow(/SSL/)
  await pool.close()
})

test('a server that another authority speaks for is refused', async () => {
  for (const mode of ['verify-ca', 'verify-full']) {
    await expect(isEncrypted(`sslmode=${mode}&sslrootcert=${folder}/stranger.pem`)).rejects.toThrow(/certificate/)
  }
  await expect(isEncrypted('sslmode=verify-full')).rejects.toThrow(/certificate/)
})

test('the name is looked at by verify-full alone', async () => {
  expect(await isEncrypted(`sslmode=verify-ca&sslrootcert=${folder}/ca.pem`, '127.0.0.1')).toBe(true)
  await expect(isEncrypted(`sslmode=verify-full&sslrootcert=${folder}/ca.pem`, '127.0.0.1')).rejects.toThrow(
    /does not match|altnames/,
  )
})
