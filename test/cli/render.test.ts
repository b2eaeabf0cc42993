/** Tables and text on terminals of every width. */
import { describe, expect, test } from 'vitest'
import { jobsTable } from '../../src/cli/render/jobs.ts'
import { plain } from '../../src/cli/render/paint.ts'
import { table } from '../../src/cli/render/table.ts'
import { printable, printableJson, truncated, widthOf } from '../../src/cli/render/text.ts'
import type { JobView } from '../../src/cli/views.ts'

const NOW = new Date('2026-01-02T00:00:00Z')
const JOB: JobView = {
  uuid: '0199c0de-0000-7000-8000-000000000001',
  name: 'archive of a folder with a long name',
  state: 'CLAIMED',
  owner: 'worker-17.example.org:4711',
  priority: 'NORMAL',
  size: 'medium',
  runs: 2,
  maxAttempts: 3,
  postedAt: new Date('2026-01-01T21:00:00Z'),
}

describe('text', () => {
  test.each([
    ['two\nlines\r\n\tthree', String.raw`two\nlines\r\n\tthree`],
    ['\x1b[31mred\x07\x00', String.raw`\x1b[31mred\x07\x00`],
    ['\u009b2J', String.raw`\x9b2J`],
    ['exe.\u202egpj', String.raw`exe.\u{202e}gpj`],
    ['half \ud800 pair', String.raw`half \u{d800} pair`],
    ['Grüße, 世界 👋🏽', 'Grüße, 世界 👋🏽'],
  ])('%j is shown as %s', (text, shown) => {
    expect(printable(text)).toBe(shown)
  })

  test('JSON that a terminal can be shown says the same', () => {
    const value = { name: 'a\u009bb\x7fc\u2028d\u202ee\n', list: ['世界'] }
    const shown = printableJson(value)
    expect(shown).toBe(String.raw`{"name":"a\u009bb\u007fc\u2028d\u202ee\n","list":["世界"]}`)
    expect(JSON.parse(shown)).toEqual(value)
  })

  test('width is counted in columns', () => {
    expect(['abc', '世界', 'e\u0301', ''].map(widthOf)).toEqual([3, 4, 1, 0])
    expect(truncated('世界地図', 5)).toBe('世界…')
    expect(truncated('世界地図', 4)).toBe('世…')
    expect(truncated('short', 5)).toBe('short')
  })
})

describe('tables', () => {
  test('in a pipe everything is whole', () => {
    expect(jobsTable([JOB], { width: undefined, now: NOW, paint: plain })).toEqual([
      'UUID                                  NAME                                  STATE    PRIORITY  RUNS  AGE  OWNER',
      '0199c0de-0000-7000-8000-000000000001  archive of a folder with a long name  CLAIMED  NORMAL    2     3h   worker-17.example.org:4711',
    ])
  })

  test('80 columns', () => {
    expect(jobsTable([JOB], { width: 80, now: NOW, paint: plain })).toEqual([
      'UUID                                  NAME              STATE    AGE  OWNER',
      '0199c0de-0000-7000-8000-000000000001  archive of a fo…  CLAIMED  3h   worker-17…',
    ])
  })

  test.each([78, 80, 100, 120, 200])('%i columns are not exceeded, and the uuid is whole', (width) => {
    const lines = jobsTable([JOB, { ...JOB, name: '世'.repeat(60) }], { width, now: NOW, paint: plain })
    expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(width)
    expect(lines[1]).toContain(JOB.uuid)
  })

  test('what cannot be cut any further is shown', () => {
    const lines = jobsTable([JOB], { width: 20, now: NOW, paint: plain })
    expect(lines[1]).toContain(JOB.uuid)
    expect(lines[0]).not.toContain('PRIORITY')
  })

  test('a name cannot forge a line', () => {
    const [, ...rows] = table([{ title: 'NAME', of: (name: string) => name }], ['a\nroot  COMPLETE', ''], {
      width: undefined,
    })
    expect(rows).toEqual([String.raw`a\nroot  COMPLETE`, '-'])
  })
})
