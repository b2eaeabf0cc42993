/** Files that somebody has put into logbooks by hand: the flow beside them is refused, the other books are not. */
import { randomUUID } from 'node:crypto'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bookFolder, flowFolder } from '../../../src/persistence/directory/layout.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { testDirectory } from './directories.ts'

test.each([
  ['a folder', (path: string) => mkdir(path)],
  ['a link to itself', (path: string) => symlink(path, path)],
])('%s in the place of a log is a fault of this flow and not of the disk', async (_, put) => {
  const root = await testDirectory()
  await using persistence = await openPersistence(`directory:${root}`)
  const [damaged, whole] = [randomUUID(), randomUUID()]
  const request = (uuid: string, run: number) => {
    return { book: { uuid, name: 'b' }, flow: { uuid, name: 'f', version: '1.0' }, run, claim: 'c' }
  }
  for (const uuid of [damaged, whole]) await (await persistence.acquire(request(uuid, 1))).close()
  await put(join(flowFolder(bookFolder(root, damaged), damaged), '2.log'))
  await expect(persistence.acquire(request(damaged, 3))).rejects.toMatchObject({
    name: 'StorageFailure',
    retryable: false,
  })
  const listed: string[] = []
  for await (const { uuid } of persistence.listBooks({ finished: false })) listed.push(uuid)
  expect(listed).toEqual([whole])
})
