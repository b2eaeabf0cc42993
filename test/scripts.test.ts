/** The `.lua` and `.sql` files of `src/`: each is used, says first what it does, and can be found. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { boardMigrations } from '../src/board/backends/postgres/store/schema.ts'
import { SCRIPTS } from '../src/board/backends/redis/store/scripts.ts'
import { openPersistenceOver } from '../src/persistence/index.ts'
import { migrationScripts, tablesScript } from '../src/sqlite/format.ts'

const SOURCE = resolve(import.meta.dirname, '../src')
const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(lua|sql)$/.test(name))

/** Returns everything that is sent to servers, as one text. */
async function sent(): Promise<string> {
  const texts = Object.values(SCRIPTS).map((script) => script.load().lua)
  texts.push(...boardMigrations('jobboard').steps, tablesScript(), ...migrationScripts())
  const query = async (text: string) => {
    texts.push(text)
    return { rows: [] }
  }
  await using _logbooks = await openPersistenceOver({ query })
  return texts.join('\n')
}

test('each file is used, and begins with a comment of its own', async () => {
  const text = await sent()
  const heads = files.map((file) => readFileSync(join(SOURCE, file), 'utf8').split('\n', 1)[0] ?? '')
  expect(files.length).toBeGreaterThan(20)
  expect(files.filter((_, index) => !/^-- [A-Z]/.test(heads[index] ?? ''))).toEqual([])
  expect(new Set(heads).size).toBe(files.length)
  expect(files.filter((_, index) => !text.includes(heads[index] ?? ''))).toEqual([])
})

test('no placeholder and no include is left', async () => {
  const text = await sent()
  expect(text).not.toMatch(/(?<!:):[A-Z]/)
  expect(text).not.toContain('@include')
})
