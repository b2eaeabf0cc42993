/** Tables and text on terminals of every width. */
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { displayWidth, truncate } from '../../../src/cli/output/render/columns.ts'
import { jobsTable } from '../../../src/cli/output/render/lists.ts'
import { logbookLines } from '../../../src/cli/output/render/logbook.ts'
import { choosePaint, plainPaint } from '../../../src/cli/output/render/paint.ts'
import { renderTable } from '../../../src/cli/output/render/table.ts'
import { escapeUnprintable, toPrintableJson } from '../../../src/cli/output/render/text.ts'
import type { Failure } from '../../../src/core/failure.ts'
import { Redactor } from '../../../src/core/redaction.ts'
import { failureView, type JobView, type LogbookView } from '../../../src/views/index.ts'

const NOW = new Date('2026-01-02T00:00:00Z')
const JOB: JobView = {
  uuid: '0199c0de-0000-7000-8000-000000000001',
  name: 'archive of a folder with a long name',
  state: 'CLAIMED',
  owner: 'worker-17.example.org:4711',
  priority: 'NORMAL',
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
    ['ad\u200bmin a\u200cb\u2060c', String.raw`ad\u{200b}min a\u{200c}b\u{2060}c`],
    ['\ufeffpay\u00adment', String.raw`\u{feff}pay\xadment`],
    ['tag\u{e0041} \u3164 a\ufe0fb \u{e0100}', String.raw`tag\u{e0041} \u{3164} a\u{fe0f}b \u{e0100}`],
    ['ad\u200dmin 👩\u200d', String.raw`ad\u{200d}min 👩\u{200d}`],
    ['👩🏽\u200d💻 ❤\ufe0f 👁\ufe0f\u200d🗨', '👩🏽\u200d💻 ❤\ufe0f 👁\ufe0f\u200d🗨'],
    ['\u0600 number', '\u0600 number'],
  ])('%j is shown as %s', (text, shown) => {
    expect(escapeUnprintable(text)).toBe(shown)
  })

  test('JSON that a terminal can be shown says the same', () => {
    const value = { name: 'a\u009bb\x7fc\u2028d\u202ee\n', list: ['世界'] }
    const shown = toPrintableJson(value)
    expect(shown).toBe(String.raw`{"name":"a\u009bb\u007fc\u2028d\u202ee\n","list":["世界"]}`)
    expect(JSON.parse(shown)).toEqual(value)
  })

  test('JSON escapes what is invisible, both halves of it', () => {
    const value = 'a\u{e0041}\u200bb'
    expect(toPrintableJson(value)).toBe(String.raw`"a\udb40\udc41\u200bb"`)
    expect(JSON.parse(toPrintableJson(value))).toBe(value)
  })

  test('a paint lets no escape of others through, with and without colours', () => {
    const paints = [plainPaint, choosePaint({ columns: 80 }, {}), choosePaint({ columns: undefined }, {})]
    for (const paint of paints) {
      for (const tone of ['bad', undefined] as const) {
        const shown = paint('\x1b]0;pwned\x07', tone)
        expect(shown).toContain(String.raw`\x1b]0;pwned\x07`)
        expect(stripVTControlCharacters(shown)).toBe(String.raw`\x1b]0;pwned\x07`)
      }
    }
  })

  test('a state out of a logbook that another program wrote is harmless', () => {
    const [now, state] = [NOW, '\x1b]0;pwned\x07\x1b[2J']
    const facts = { uuid: 'u', name: 'n', flow: 'f', version: '1', run: 1, createdAt: now, updatedAt: now, atoms: [] }
    const forged: LogbookView = JSON.parse(JSON.stringify({ ...facts, state }), (key, value) =>
      key.endsWith('At') ? new Date(value) : value,
    )
    const lines = logbookLines(forged, { screen: { width: 80, now: NOW, paint: plainPaint } })
    expect(lines.join('\n')).toContain(String.raw`\x1b]0;pwned\x07\x1b[2J`)
    expect(lines.join('')).not.toMatch(/\p{Cc}/u)
  })

  test('a failure that is malformed is shown as far as it goes', () => {
    const none = new Redactor([])
    const shown = (failure: unknown) => failureView(failure as Failure, none)
    expect(shown({ name: 'E', message: 'm', causes: 'abc' })).toEqual({ name: 'E', message: 'm' })
    expect(shown({ name: 1, message: 2, code: 3, causes: [null] })).toEqual({
      ...{ name: 'Error', message: 'a message that cannot be read' },
      causes: [{ name: 'Error', message: 'a failure that cannot be read' }],
    })
  })

  test('width is counted in columns', () => {
    expect(['abc', '世界', 'e\u0301', ''].map(displayWidth)).toEqual([3, 4, 1, 0])
    expect(['👋🏽', '👩🏽\u200d💻', '❤\ufe0f', '🇩🇪', '1\ufe0f\u20e3'].map(displayWidth)).toEqual([2, 2, 2, 2, 2])
    expect(truncate('世界地図', 5)).toBe('世界…')
    expect(truncate('世界地図', 4)).toBe('世…')
    expect(truncate('short', 5)).toBe('short')
    expect(truncate('👩🏽\u200d💻👩🏽\u200d💻👩🏽\u200d💻', 4)).toBe('👩🏽\u200d💻…')
  })
})

describe('tables', () => {
  test('in a pipe everything is whole', () => {
    expect(jobsTable([JOB], { width: undefined, now: NOW, paint: plainPaint })).toEqual([
      'UUID                                  NAME                                  STATE    PRIORITY  RUNS  AGE  OWNER',
      '0199c0de-0000-7000-8000-000000000001  archive of a folder with a long name  CLAIMED  NORMAL    2     3h   worker-17.example.org:4711',
    ])
  })

  test('80 columns', () => {
    expect(jobsTable([JOB], { width: 80, now: NOW, paint: plainPaint })).toEqual([
      'UUID                                  NAME              STATE    AGE  OWNER',
      '0199c0de-0000-7000-8000-000000000001  archive of a fo…  CLAIMED  3h   worker-17…',
    ])
  })

  test.each([78, 80, 100, 120, 200])('%i columns are not exceeded, and the uuid is whole', (width) => {
    const lines = jobsTable([JOB, { ...JOB, name: '世'.repeat(60) }], { width, now: NOW, paint: plainPaint })
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(width)
    expect(lines[1]).toContain(JOB.uuid)
  })

  test('what cannot be cut any further is shown', () => {
    const lines = jobsTable([JOB], { width: 20, now: NOW, paint: plainPaint })
    expect(lines[1]).toContain(JOB.uuid)
    expect(lines[0]).not.toContain('PRIORITY')
  })

  test('a name cannot forge a line', () => {
    const [, ...rows] = renderTable([{ title: 'NAME', value: (name: string) => name }], ['a\nroot  COMPLETE', ''], {
      width: undefined,
    })
    expect(rows).toEqual([String.raw`a\nroot  COMPLETE`, '-'])
  })
})
