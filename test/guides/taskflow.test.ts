/** The examples of the guide to boards that are shared with TaskFlow, one after the other on one board: Python's too. */
import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPage } from '../docs/pages.ts'
import { expectPrints, installedPackage, snippetsOf, transpile } from '../docs/snippets.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { PYTHON, provideTaskFlow, taskflowLeftOut } from '../support/taskflow.ts'

const GUIDE = await readPage('docs/guides/taskflow-shared.md')
const SNIPPETS = snippetsOf(GUIDE)
const PYTHONS = GUIDE.blocks.filter(({ language }) => language === 'python').map(({ code }) => code)

const place = namespace('guide')
const here = (code: string) =>
  code.replaceAll('127.0.0.1:2181', zookeeperHosts).replaceAll('/taskflow/jobs', `${place}/jobs`)

describe.skipIf(!zookeeperHosts || taskflowLeftOut)('the guide to boards that are shared with TaskFlow', () => {
  let folder: string
  beforeAll(async () => {
    await provideTaskFlow()
    folder = await installedPackage()
    await transpile(folder, SNIPPETS)
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('its examples print what they say, in their order', async () => {
    expect(SNIPPETS).toHaveLength(2)
    const [before, after] = SNIPPETS
    const [python = ''] = PYTHONS
    if (!before || !after) throw new Error('there are two examples')
    await expectPrints(folder, before, here)
    const { stdout } = await promisify(execFile)(PYTHON, ['-c', here(python)])
    expect(stdout.trimEnd().split('\n')).toEqual(
      [...python.matchAll(/print\(.*\) {2}# (.*)$/gm)].map(([, said]) => said),
    )
    await expectPrints(folder, after, here)
  })
})
