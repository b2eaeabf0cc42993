import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { NotFound } from '../../../src/core/errors.ts'
import { openPersistence } from '../../../src/persistence/index.ts'
import { persistenceContract } from '../../contract/persistence.ts'

persistenceContract({
  name: 'memory:',
  storage: async () => {
    const name = `memory:${randomUUID()}`
    return { open: () => openPersistence(name), [Symbol.asyncDispose]: async () => undefined }
  },
})

test('memory: is private to who opened it', async () => {
  await using one = await openPersistence('memory:')
  await using two = await openPersistence('memory:')
  await one.createBook({ uuid: 'book', name: 'book' })
  await expect(two.getBook('book')).rejects.toThrow(NotFound)
})

test('memory:NAME outlives the objects that were opened on it', async () => {
  const uri = `memory:${randomUUID()}`
  const first = await openPersistence(uri)
  await first.createBook({ uuid: 'book', name: 'kept' })
  await first.close()
  await using second = await openPersistence(uri)
  expect(await second.getBook('book')).toMatchObject({ name: 'kept' })
})
