/** The tables in the reference are those of the code. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ATOM_TRANSITIONS, ENGINE_TRANSITIONS, FLOW_TRANSITIONS, JOB_TRANSITIONS } from '../../src/core/states.ts'

const page = await readFile(join(import.meta.dirname, '../../docs/reference/states.md'), 'utf8')

test.each([
  ['job', JOB_TRANSITIONS],
  ['flow', FLOW_TRANSITIONS],
  ['atom', ATOM_TRANSITIONS],
  ['engine', ENGINE_TRANSITIONS],
])('the table of the states of a %s', (what, table: Readonly<Record<string, readonly string[]>>) => {
  const [, rows = ''] = page.split(`| ${what} | may become |\n|---|---|\n`)
  const [written = ''] = rows.split('\n\n')
  const lines = Object.entries(table).map(([from, to]) => `| ${from} | ${to.length > 0 ? `${to.join(', ')} |` : '|'}`)
  expect(written.split('\n')).toEqual(lines)
})
