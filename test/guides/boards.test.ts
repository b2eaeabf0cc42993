/** The examples of the guide to boards: they compile, and they print what their comments say. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { compiles, expectPrints, guideOf, snippetsOf, strangersPackage, writeSnippets } from './snippets.ts'

const SNIPPETS = snippetsOf(await guideOf('boards'))

describe('the guide to boards', () => {
  let folder: string
  beforeAll(async () => {
    folder = await strangersPackage()
    await writeSnippets(folder, SNIPPETS)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('its examples compile', () => compiles(folder))

  test.each(SNIPPETS)('example $title, prints what it says', async ({ title, code }) => {
    await expectPrints(folder, { name: title.split(',')[0] ?? '', code, run: code })
  })
})
