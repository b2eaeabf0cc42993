import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const TABLE = 'docs/reference/zookeeper-conformance.md'
const NAMED = /\[([^\]]+)\]\(\.\.\/\.\.\/([^)]+\.ts)\)/g
const NUMBERED_ROWS = 97

interface Row {
  readonly number: string
  readonly answer: string
}

async function rows(): Promise<Row[]> {
  const text = await readFile(resolve(ROOT, TABLE), 'utf8')
  const found: Row[] = []
  for (const line of text.split('\n')) {
    const [, number = '', , answer = ''] = line.split('|').map((cell) => cell.trim())
    if (/^\d+(–\d+)?$|^own$/.test(number)) found.push({ number, answer })
  }
  return found
}

test('every row of the conformance checklist is there, and names a test or says why there is none', async () => {
  const covered = new Set<number>()
  for (const { number, answer } of await rows()) {
    const [first = 0, last = first] = number.split('–').map(Number)
    for (let each = first; each <= last; each++) covered.add(each)
    expect([...answer.matchAll(NAMED)].length > 0 || answer.startsWith('none:'), `${number}: ${answer}`).toBe(true)
  }
  const all = Array.from({ length: NUMBERED_ROWS }, (_, index) => index + 1)
  expect(all.filter((number) => !covered.has(number))).toEqual([])
})

test('the tests that the conformance table names are there', async () => {
  for (const { number, answer } of await rows()) {
    for (const [, name = '', file = ''] of answer.matchAll(NAMED)) {
      const source = await readFile(resolve(ROOT, file), 'utf8')
      const there = source.includes(`'${name}'`) || source.includes(`\`${name}\``)
      expect(there, `${number}: ${file} has no test "${name}"`).toBe(true)
    }
  }
})
