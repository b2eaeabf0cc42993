import { expect, test } from 'vitest'
import { decodeText, encodeText, PostgresError, toPostgresError } from '../../src/postgres/index.ts'

const coded = (code: string, message = 'why') => Object.assign(new Error(message), { code })

test.each([
  ['40001', true, 'refused'],
  ['40P01', true, 'refused'],
  ['53300', true, 'refused'],
  ['57014', true, 'refused'],
  ['57P01', true, 'unknown'],
  ['57P03', true, 'refused'],
  ['25006', true, 'refused'],
  ['55P03', true, 'refused'],
  ['08006', true, 'unknown'],
  ['28P01', false, 'refused'],
  ['3D000', false, 'refused'],
  ['42P01', false, 'refused'],
  ['22021', false, 'refused'],
  ['54000', false, 'refused'],
] as const)('SQLSTATE %s', (code, retryable, outcome) => {
  expect(toPostgresError(coded(code))).toMatchObject({ sqlState: code, retryable, outcome, message: 'why' })
})

test.each([
  ['22021', 'request'],
  ['23502', 'request'],
  ['42601', 'request'],
  ['54000', 'request'],
  ['XX000', 'request'],
  ['42501', 'place'],
  ['42P01', 'place'],
  ['28P01', 'place'],
  ['3D000', 'place'],
  ['53100', 'place'],
  ['57P01', 'place'],
  ['XX001', 'place'],
] as const)('SQLSTATE %s is the fault of the %s', (code, fault) => {
  expect(toPostgresError(coded(code))).toMatchObject({ fault })
})

test('TLS that does not come about is not tried again, and is no fault of what was asked', () => {
  for (const error of [
    new Error('The server does not support SSL connections'),
    coded('DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'),
  ])
    expect(toPostgresError(error)).toMatchObject({ retryable: false, fault: 'place' })
})

test.each(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTFOUND'])('%s is no SQLSTATE', (code) => {
  expect(toPostgresError(coded(code))).toMatchObject({ sqlState: undefined, retryable: true, outcome: 'unknown' })
})

test('an error without a code is a lost connection, one of the code around it is not', () => {
  expect(toPostgresError(new Error('Connection terminated unexpectedly'))).toMatchObject({ retryable: true })
  expect(toPostgresError(new TypeError('no function'))).toMatchObject({ retryable: false })
  const error = toPostgresError(coded('40001'))
  expect(toPostgresError(error)).toBe(error)
  expect(error).toBeInstanceOf(PostgresError)
})

test('texts that Postgres cannot keep come back as they were, and no two become one', () => {
  const texts = ['', 'plain', '\0', '\\', '\\0', '\0\\', '\\\\0', 'a\0b\\c']
  expect(texts.map((text) => decodeText(encodeText(text)))).toEqual(texts)
  expect(new Set(texts.map(encodeText)).size).toBe(texts.length)
  for (const text of texts) expect(encodeText(text)).not.toContain('\0')
})

test('a pooler that refuses settings is no passing fault, and the message says what to do', () => {
  const error = toPostgresError(coded('08P01', 'unsupported startup parameter: statement_timeout'))
  expect(error).toMatchObject({ retryable: false })
  expect(error.message).toContain('add statementTimeout=0s to the URI')
})
