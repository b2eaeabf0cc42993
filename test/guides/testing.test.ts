/** The examples of the guide to testing: they compile, and they print what their comments say. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { compile, expectPrints, guideOf, snippetsOf, strangersPackage } from './snippets.ts'

const SNIPPETS = snippetsOf(await guideOf('testing'))

describe('the guide to testing', () => {
  let folder: string
  beforeAll(async () => {
    folder = await strangersPackage()
    await compile(folder, SNIPPETS)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  for (const [index, { title, code }] of SNIPPETS.entries()) {
    test(`example ${title}, prints what it says`, () => expectPrints(folder, { number: index + 1, code }))
  }
})
