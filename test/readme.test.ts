/** The README's quick start, as it stands there. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '..')

test('the quick start runs and says what its comments say', async () => {
  const readme = await readFile(join(ROOT, 'README.md'), 'utf8')
  const code = /## Quick start\n\n```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
  expect(code).toContain("import { input, linear, openBoard, startConductor, task } from 'jobboard'")
  // Inside the package, so that its own name resolves.
  const folder = await mkdtemp(join(ROOT, '.test-quick-start-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'quick-start.mts'), code)
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', 'tsx', 'quick-start.mts'], {
    cwd: folder,
  })
  expect({ stdout, stderr }).toEqual({ stdout: 'Hello, Ada!\nCOMPLETE\n', stderr: '' })
})
