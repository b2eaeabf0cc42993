import { expect, test } from 'vitest'
import { InvalidArgument, InvalidState } from '../../src/core/errors.ts'
import { openPersistence } from '../../src/persistence/index.ts'

test.each([
  ['', 'is not a URI'],
  ['logbooks', 'is not a URI'],
  ['directory', 'is not a URI'],
  ['directory:', 'write directory:DIR'],
  ['directory://logbooks', 'write directory:DIR'],
  ['directory:./logbooks?sync=no', 'unknown parameter "sync"'],
  ['directory:%00', 'write directory:DIR'],
  ['memory://host/name', 'write memory: or memory:NAME'],
  ['memory:?name=x', 'unknown parameter "name"'],
  ['constructor:x', 'use memory: or memory:NAME, directory:./logbooks'],
  ['mysql://user:secret@host/db', 'mysql://user:***@host/db'],
])('%j is refused', async (uri, message) => {
  const refusal: unknown = await openPersistence(uri).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(InvalidArgument)
  expect(String(refusal)).toContain(message)
  expect(String(refusal)).not.toContain('secret')
})

test('an open object is handed back as it is', async () => {
  await using persistence = await openPersistence('memory:')
  expect(await openPersistence(persistence)).toBe(persistence)
  await expect(persistence.open()).rejects.toThrow(InvalidState)
})

test('a URL names them as its text does, and nothing names none', async () => {
  await using persistence = await openPersistence(new URL('memory:of-a-url'))
  expect(persistence.uri).toBe('memory:of-a-url')
  for (const nothing of [undefined, null, {}]) {
    await expect(Reflect.apply(openPersistence, undefined, [nothing])).rejects.toThrow(
      /the first argument must be a URI/,
    )
  }
})
