/** The examples of the guide to flows. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compile, expectPrints, guideOf, snippetsOf, strangersPackage } from './snippets.ts'

const SNIPPETS = snippetsOf(await guideOf('flows'))

describe('the guide to flows', () => {
  let folder: string
  beforeAll(async () => {
    folder = await strangersPackage()
    await compile(folder, SNIPPETS)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('has examples', () => {
    expect(SNIPPETS).toHaveLength(6)
  })

  test.each(SNIPPETS.map(({ title, code }, index) => ({ title, code, number: index + 1 })))(
    'example $title prints what it says',
    ({ number, code }) => expectPrints(folder, { number, code }),
  )
})
