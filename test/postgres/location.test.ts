import { afterEach, describe, expect, test, vi } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { parseUri } from '../../src/core/uri.ts'
import { parsePostgresLocation, poolSettings } from '../../src/postgres/location.ts'

const placeOf = (text: string) => parsePostgresLocation(parseUri(text, 'persistence'))

test('what stands in the URI is what the pool receives', async () => {
  const uri = 'postgres://ada:p%40ss@db.example:6543/jobs?schema=other&statementTimeout=2s&connectTimeout=1s&poolSize=9'
  expect(placeOf(uri).schema).toBe('other')
  expect(await poolSettings(placeOf(uri))).toEqual({
    host: 'db.example',
    port: 6543,
    user: 'ada',
    password: 'p@ss',
    database: 'jobs',
    statement_timeout: 2_000,
    options: expect.stringContaining('-c default_transaction_isolation=read\\ committed -c '),
    query_timeout: 7_000,
    connectionTimeoutMillis: 1_000,
    application_name: 'jobboard',
    max: 9,
    keepAlive: true,
    ssl: false,
  })
})

test('what is left out is left to the driver, which asks the environment', async () => {
  const settings = await poolSettings(placeOf('postgres:///'))
  for (const name of ['host', 'port', 'user', 'password', 'database']) expect(settings).not.toHaveProperty(name)
  expect(settings).toMatchObject({ statement_timeout: 30_000, max: 4 })
})

test('behind a pooler that refuses settings there are none', async () => {
  const settings = await poolSettings(placeOf('postgres://db/jobs?statementTimeout=0s'))
  expect(settings).not.toHaveProperty('statement_timeout')
  expect(settings).not.toHaveProperty('options')
  expect(settings.query_timeout).toBe(35_000)
})

test.each([
  ['disable', false],
  ['require', { rejectUnauthorized: false }],
  ['verify-full', { rejectUnauthorized: true }],
])('sslmode=%s', async (mode, ssl) => {
  expect((await poolSettings(placeOf(`postgres://db/jobs?sslmode=${mode}`))).ssl).toEqual(ssl)
})

test('an address of version 6', async () => {
  expect(await poolSettings(placeOf('postgres://[::1]:5433/jobs'))).toMatchObject({ host: '::1', port: 5433 })
})

test.each([
  ['postgres://a,b/jobs', 'several hosts'],
  ['postgres://db:port/jobs', 'no address'],
  ['postgres://db/jobs?sslmode=prefer', 'sslmode must be one of'],
  ['postgres://db/jobs?sslrootcert=ca.pem', 'without TLS'],
  ['postgres://db/jobs?poolSize=0', 'poolSize must be a whole number'],
  ['postgres://db/jobs?statementTimeout=soon', 'statementTimeout'],
  ['postgres://db/jobs?schema=Jobs', 'lower-case'],
  ['postgres://db/jobs?schema=pg_jobs', 'no pg_ in front'],
  ['postgres://db/jobs?shema=jobs', 'unknown parameter "shema"'],
])('%s is refused', (uri, message) => {
  expect(() => placeOf(uri)).toThrow(InvalidArgument)
  expect(() => placeOf(uri)).toThrow(message)
})

test('a certificate that cannot be read is named', async () => {
  const place = placeOf('postgres://db/jobs?sslmode=verify-full&sslrootcert=/nowhere/ca.pem')
  await expect(poolSettings(place)).rejects.toThrow('sslrootcert cannot be read')
})

describe('the environment', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('asks for TLS where the URI says nothing of it', async () => {
    vi.stubEnv('PGSSLMODE', 'verify-full')
    vi.stubEnv('PGSSLROOTCERT', import.meta.filename)
    const { ssl } = await poolSettings(placeOf('postgres://db/jobs'))
    expect(ssl).toMatchObject({ rejectUnauthorized: true, ca: expect.any(Buffer) })
    expect((await poolSettings(placeOf('postgres://db/jobs?sslmode=disable'))).ssl).toBe(false)
  })

  test.each(['prefer', 'allow', 'verifyfull'])('is refused where it asks for what there is not (%s)', (mode) => {
    vi.stubEnv('PGSSLMODE', mode)
    expect(() => placeOf('postgres://db/jobs')).toThrow('PGSSLMODE (of the environment) must be one of')
  })

  test('that names a file which cannot be read is named', async () => {
    vi.stubEnv('PGSSLMODE', 'verify-full')
    vi.stubEnv('PGSSLROOTCERT', '/nowhere/ca.pem')
    await expect(poolSettings(placeOf('postgres://db/jobs'))).rejects.toThrow(
      'PGSSLROOTCERT (of the environment) cannot',
    )
  })
})
