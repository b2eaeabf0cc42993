/** The language of the search box. */
import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { matches, namesUuid, type Searched } from '../../src/ui/search/match.ts'
import { parseSearch } from '../../src/ui/search/parse.ts'
import { usual as test, variant } from '../variant.ts'

const JOB: Searched = {
  ...{
    uuid: '0199c0de-85f8-7000-8000-00000000beef',
    name: 'Import of May',
    flow: 'import',
    version: '2',
    key: 'user:7',
  },
  ...{
    owner: 'host-a:17',
    schedule: 'nightly',
    batch: '0199c0de-0000-7000-8000-000000000001',
    priority: 'HIGH',
    queue: 'small',
  },
  ...{ runs: 2, resources: ['disk/1'], limits: ['flow/import', 'tenant/acme'], reasons: ['timeout after 312 ms'] },
  store: { customer: { id: 42, tags: ['vip', 'eu'] }, 'a b': null, since: new Date(0) },
}

test.each([
  ['', true],
  ['import', true],
  ['IMPORT may', true],
  ['import june', false],
  ['"may…"', false],
  ['name:"import \\* may"', false],
  ['store.customer.id="\\*"', false],
  ['store.customer.id=*', true],
  ['key:""', false],
  ['group:""', false],
  ['0199c0de', true],
  ['beef', true],
  ['"of may"', true],
  ['timeout', true],
  ['name:"import of may"', true],
  ['name:import', false],
  ['name:import*', true],
  ['name:*may', true],
  ['name:*of*', true],
  ['flow:IMPORT version:2', true],
  ['flow:"import"', true],
  ['key:"user:7"', true],
  ['key:user:7', true],
  ['owner:host-a:*', true],
  ['resource:disk/1 limit:tenant/*', true],
  ['limit:tenant/other', false],
  ['schedule:nightly', true],
  ['batch:0199c0de-0000-7000-8000-000000000001', true],
  ['priority:high queue:small', true],
  ['attempts:2', true],
  ['attempts:>1', true],
  ['attempts:>=2 attempts:<=2 attempts:=2', true],
  ['attempts:<2', false],
  ['reason:"timeout after … ms"', true],
  ['reason:"timeout after … s"', false],
  ['store.customer.id=42', true],
  ['store.customer.id=43', false],
  ['store.customer.tags=eu', true],
  ['store.customer=*', true],
  ['store.customer.nothing=*', false],
  ['store.since="1970-01-01T00:00:00.000Z"', true],
  ['store.customer.constructor=*', false],
  ['12:30', false],
])('%s matches: %s', (text, expected) => {
  expect(matches(parseSearch(text), JOB)).toBe(expected)
})

test('states are a set', () => {
  expect(parseSearch('state:waiting,Running x').states).toEqual(new Set(['waiting', 'running']))
  expect(parseSearch('x').states).toBeUndefined()
})

describe('is refused with one clear line', () => {
  test.each([
    ['nmae:x', 'did you mean name?'],
    ['foo:x', 'to search for a word with a colon, put it in quotes'],
    ['state:sleeping', "state must be one of waiting, delayed, running, trashed, done, got 'sleeping'"],
    ['attempts:many', 'attempts must be a number'],
    ['attempts:>', 'attempts must be a number'],
    ['name:', 'name: needs a value'],
    ['store.=x', 'store.KEY'],
    ['name:"x', 'an opening quote without a closing one'],
    ['x '.repeat(21), 'at most 20 parts'],
    ['x'.repeat(2_001), 'at most 2000 characters'],
  ])('%s', (text, message) => {
    expect(() => parseSearch(text)).toThrow(InvalidArgument)
    expect(() => parseSearch(text)).toThrow(message)
  })
})

test.each([
  ['0199c0de', true],
  ['import', false],
  ['-8000', true],
  ['beef', false],
])('%s may be a part of a uuid: %s', (text, expected) => {
  expect(namesUuid(parseSearch(text))).toBe(expected)
})

variant('whatever is typed, it is understood or refused; and it never takes long', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.constantFrom(
      'name:',
      'state:',
      'store.a',
      'store.',
      '=',
      ':',
      '"',
      '\\',
      '*',
      '…',
      ' ',
      'attempts:>',
      '0199',
      '-',
      'state:waiting',
    ),
  )
  const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''))
  fc.assert(
    fc.property(text, fc.string({ maxLength: 500 }), (typed, name) => {
      try {
        matches(parseSearch(typed), { ...JOB, name })
      } catch (error) {
        if (!(error instanceof InvalidArgument)) throw error
      }
    }),
    { numRuns: 2_000 },
  )
})

test('a word that is quoted finds itself', () => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, maxLength: 100 }).filter((text) => text.trim() !== ''),
      (name) => {
        const quoted = `"${name.replace(/["\\]/g, '\\$&')}"`
        expect(matches(parseSearch(`name:${quoted}`), { ...JOB, name })).toBe(true)
        expect(matches(parseSearch(quoted), { ...JOB, name })).toBe(true)
      },
    ),
  )
})
