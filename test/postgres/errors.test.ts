import { expect, test } from 'vitest'
import { fromStorable, PostgresError, postgresError, storable } from '../../src/postgres/index.ts'

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
  expect(postgresError(coded(code))).toMatchObject({ sqlState: code, retryable, outcome, message: 'why' })
})

test.each(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTFOUND'])('%s is no SQLSTATE', (code) => {
  expect(postgresError(coded(code))).toMatchObject({ sqlState: undefined, retryable: true, outcome: 'unknown' })
})

test('an error without a code is a lost connection, one of the code around it is not', () => {
  expect(postgresError(new Error('Connection terminated unexpectedly'))).toMatchObject({ retryable: true })
  expect(postgresError(new TypeError('no function'))).toMatchObject({ retryable: false })
  const error = postgresError(coded('40001'))
  expect(postgresError(error)).toBe(error)
  expect(error).toBeInstanceOf(PostgresError)
})

test('texts that Postgres cannot keep come back as they were, and no two become one', () => {
  const texts = ['', 'plain', '\0', '\\', '\\0', '\0\\', '\\\\0', 'a\0b\\c']
  expect(texts.map((text) => fromStorable(storable(text)))).toEqual(texts)
  expect(new Set(texts.map(storable)).size).toBe(texts.length)
  for (const text of texts) expect(storable(text)).not.toContain('\0')
})
