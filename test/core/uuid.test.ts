import { validate, version } from 'uuid'
import { expect, test } from 'vitest'
import { newUuid } from '../../src/core/uuid.ts'

test('ids are of version 7, and no two are alike, however many are made', () => {
  const ids = Array.from({ length: 2_000 }, newUuid)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.every((id) => validate(id) && version(id) === 7)).toBe(true)
})

test('ids of one time lie together', () => {
  const before = Date.now()
  const time = Number.parseInt(newUuid().replaceAll('-', '').slice(0, 12), 16)
  expect(time).toBeGreaterThanOrEqual(before)
  expect(time).toBeLessThanOrEqual(Date.now())
})
