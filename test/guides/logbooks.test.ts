/** The examples of the guide to logbooks: they compile, and they print what their comments say. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { compile, expectPrints, guideOf, snippetsOf, strangersPackage } from './snippets.ts'

const SNIPPETS = snippetsOf(await guideOf('logbooks'))

describe('the guide to logbooks', () => {
  let folder: string
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
    folder = await strangersPackage()
    await compile(folder, SNIPPETS)
  })
  afterAll(async () => {
    await server?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  for (const [index, { title, code }] of SNIPPETS.entries()) {
    test(`example ${title}, prints what it says`, () => {
      const here = (text: string) => text.replace('postgres://postgres@127.0.0.1:5432/postgres', server.uri)
      return expectPrints(folder, { number: index + 1, code, here })
    })
  }
})
