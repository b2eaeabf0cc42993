/** A config file decides what code is run: whose may be believed. */
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FILE_NAME, nearest } from '../../src/cli/config/nearest.ts'

async function folders(): Promise<{ above: string; below: string }> {
  const above = await mkdtemp(join(tmpdir(), 'jobboard-nearest-'))
  onTestFinished(() => rm(above, { recursive: true }))
  const below = join(above, 'a/b')
  await mkdir(below, { recursive: true })
  return { above, below }
}

test('the nearest is taken, of those here and above', async () => {
  const { above, below } = await folders()
  expect(await nearest(below)).toBeUndefined()
  await writeFile(join(above, FILE_NAME), '')
  expect(await nearest(below)).toBe(join(above, FILE_NAME))
  await writeFile(join(below, FILE_NAME), '')
  expect(await nearest(below)).toBe(join(below, FILE_NAME))
})

// Only root may give a file to somebody else.
test.runIf(process.getuid?.() === 0)('one that another user has put there is not believed', async () => {
  const { above, below } = await folders()
  const file = join(above, FILE_NAME)
  await writeFile(file, '')
  await chown(file, 65_534, 65_534)
  await expect(nearest(below)).rejects.toThrow(`${file} belongs to another user: name it with --config ${file}`)
})
