/** The examples that take a Postgres: they print what their comments say. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPage } from '../docs/pages.ts'
import { expectPrints, installedPackage, snippetsOf, transpile } from '../docs/snippets.ts'
import { createDatabase, type PostgresDatabase } from '../support/postgres-database.ts'

const URI = 'postgres://postgres@127.0.0.1:5432/postgres'
const PAGES = await Promise.all(['docs/guides/logbooks.md', 'docs/guides/postgres.md'].map(readPage))
const SNIPPETS = PAGES.flatMap(snippetsOf).filter(({ code }) => code.includes(URI))

describe('the guides to Postgres', () => {
  let folder: string
  let server: PostgresDatabase
  beforeAll(async () => {
    server = await createDatabase()
    folder = await installedPackage()
    await transpile(folder, SNIPPETS)
  })
  afterAll(async () => {
    await server?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  test('have examples', () => {
    expect(new Set(SNIPPETS.map(({ page }) => page)).size).toBe(2)
  })

  for (const snippet of SNIPPETS) {
    test(`${snippet.page}: example ${snippet.title}, prints what it says`, () =>
      expectPrints(folder, snippet, (text) => text.replaceAll(URI, server.uri)))
  }
})
