/** Files of scripts: includes, placeholders, and what is missing. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { InvalidState } from '../../src/core/errors.ts'
import { fillScript, readScript } from '../../src/core/script-file.ts'

let folder: string
let module: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'jobboard-scripts-'))
  module = pathToFileURL(join(folder, 'module.js')).href
})
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, text: string): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return `./${name}`
}

test('an include is replaced by its file, once, relative to the including file', () => {
  write('shared/first.lua', 'first()\n')
  write('shared/second.lua', '--- @include "first.lua"\nsecond()\n')
  const file = write('main.lua', '--- @include "shared/first.lua"\n--- @include "shared/second.lua"\nmain()\n')
  expect(readScript(module, file)).toBe('first()\n\n\nsecond()\n\nmain()\n')
})

test('a file is read once', () => {
  const file = write('once.lua', 'before')
  expect(readScript(module, file)).toBe('before')
  write('once.lua', 'after')
  expect(readScript(module, file)).toBe('before')
})

test('placeholders are replaced, casts are not', () => {
  const file = write('table.sql', "SELECT ':SCHEMA.t'::regclass, a::TEXT FROM :SCHEMA.t")
  expect(fillScript(module, file, { SCHEMA: '$&' })).toBe("SELECT '$&.t'::regclass, a::TEXT FROM $&.t")
  expect(fillScript(module, file, { SCHEMA: 's' })).toBe("SELECT 's.t'::regclass, a::TEXT FROM s.t")
})

test('a placeholder without a value is an error that names the file and the placeholder', () => {
  const file = write('unfilled.sql', 'SELECT FROM :SCHEMA.t WHERE a = :OTHER')
  expect(() => fillScript(module, file, { SCHEMA: 's' })).toThrow('./unfilled.sql: placeholder :OTHER has no value')
})

test('a missing file is an error that says what to do, also where a bundle has no import.meta.url', () => {
  const including = write('including.lua', '--- @include "missing.lua"\n')
  for (const [from, file] of [
    [module, './missing.lua'],
    [module, including],
    [undefined as never, './missing.lua'],
  ] as const) {
    expect(() => readScript(from, file)).toThrow(InvalidState)
    expect(() => readScript(from, file)).toThrow(/cannot read \S*missing\.lua.*mark jobboard as external/)
  }
})
