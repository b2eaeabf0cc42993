/** Texts that anybody may have written are read in linear time: these took minutes where it was quadratic. */
import { expect, test } from 'vitest'
import { Redactor } from '../../src/core/redaction.ts'

const LENGTH = 200_000
const MAX_CPU_MS = 5_000
const redaction = new Redactor(['password', 'token', 'api-key'])

test.each<[string, (count: number) => string]>([
  ['line breaks after a colon', (count) => `password:${'\n'.repeat(count)},`],
  ['blanks after an equals sign', (count) => `password=${' '.repeat(count)};`],
  ['blanks after a name', (count) => `password${' '.repeat(count)}`],
  ['a quoted value without its end', (count) => `password:"${'a\\b'.repeat(count / 3)}\\\n`],
  ['an escaped value without its end', (count) => `password:\\"${'a'.repeat(count)}\n`],
  ['many names', (count) => 'password:\n'.repeat(count / 10)],
  ['many parts of a name', (count) => 'pass_'.repeat(count / 5)],
  ['many escaped values', (count) => 'password:\\"'.repeat(count / 11)],
  ['many lists', (count) => 'password:[\n'.repeat(count / 11)],
])('the text is redacted in linear time: %s', (_, make) => {
  const { user } = process.cpuUsage()
  const shown = redaction.text(make(LENGTH))
  expect(shown.length).toBeGreaterThan(0)
  expect((process.cpuUsage().user - user) / 1_000).toBeLessThan(MAX_CPU_MS)
})
