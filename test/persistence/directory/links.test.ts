/** A file system whose files have one name each: no run could take over from another there. */
import { readdir } from 'node:fs/promises'
import { expect, test, vi } from 'vitest'
import { StorageFailure } from '../../../src/core/errors.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { testDirectory } from './directories.ts'

/** Another user than the one who runs this. */
const ANOTHER = (process.getuid?.() ?? 0) + 1

vi.mock('node:fs/promises', async (original) => ({
  ...(await original<typeof import('node:fs/promises')>()),
  lstat: async (path: string) => ({ uid: ANOTHER, isSymbolicLink: () => path.endsWith('.link') }),
  link: async () => {
    throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' })
  },
}))

test('a folder whose name is a link that another user made is refused', async () => {
  const path = `${await testDirectory()}/logbooks.link`
  const refusal: unknown = await openPersistence(`directory:${path}`).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(StorageFailure)
  expect(String(refusal)).toContain(`it is a link that another user created (uid ${ANOTHER}); name its target folder`)
})

test('is found out when logbooks are opened, not by the first job; to look at what is there needs no links', async () => {
  const directory = await testDirectory()
  const refusal: unknown = await openPersistence(`directory:${directory}`).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(StorageFailure)
  expect(refusal).toMatchObject({ retryable: false })
  expect(String(refusal)).toContain('its file system has no hard links; name a folder on another file system')
  expect(await readdir(directory)).toEqual([])
  await (await openPersistence(`directory:${directory}`, { create: false })).close()
})
