/** Children whose code does what no worker should do: nobody else must suffer from it. */
import { expect, test, vi } from 'vitest'
import { ChildDied, ChildUnavailable, OutOfMemory } from '../../src/core/errors.ts'
import { rejectionOf } from '../board/events.ts'
import { newFile, pidsIn, testPool, whenDead } from './pools.ts'

test('messages that are not of the pool are ignored, while it starts, works and is idle', async () => {
  await using pool = await testPool({ max: 1 }, { settings: { fails: 'greet' } })
  const first = await pool.run({ kind: 'chat' })
  expect(await pool.run({ kind: 'pid' })).toBe(first)
})

test('a fault of earlier work is no failure of the work that is under way', async () => {
  await using pool = await testPool({ max: 1 })
  await pool.run({ kind: 'lateFault' })
  const error = await rejectionOf(pool.run({ kind: 'ignore', file: await newFile() }))
  expect(error).toBeInstanceOf(ChildUnavailable)
  expect(String(error)).toContain('code that does not belong to this work has failed')
  expect(String((error as Error).cause)).toContain('of the first work')
  expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
})

test('a child that closes its channel is killed, and its work does not wait for ever', async () => {
  await using pool = await testPool({ max: 1 })
  const file = await newFile()
  await pool.run({ kind: 'disconnect', file })
  const [pid = 0] = await pidsIn(file, 1)
  const next = await pool.run({ kind: 'echo', value: 1 }).catch((error: unknown) => error)
  if (next !== 1) expect(next).toBeInstanceOf(ChildDied)
  await whenDead([pid])
  expect(await pool.run({ kind: 'echo', value: 2 })).toBe(2)
})

test('work with too little memory fails, and keeps nobody else from working', async () => {
  await using pool = await testPool({ max: 2 })
  const memory = 40 * 1_024 ** 2
  for (let round = 0; round < 6; round += 1)
    expect(await rejectionOf(pool.run({ kind: 'pid' }, { memory }))).toBeInstanceOf(OutOfMemory)
  expect(pool.pool.refusal).toBeUndefined()
  expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
  expect(pool.events.filter(({ kind }) => kind === 'start-failed')).toEqual([])
})

test('while children live, starts that fail keep them from no work', async () => {
  const file = await newFile()
  await using pool = await testPool({ min: 1, max: 2 }, { settings: { fails: 'while', file } })
  const { writeFile } = await import('node:fs/promises')
  await writeFile(file, '')
  const asked = Array.from({ length: 8 }, (_, value) => pool.run({ kind: 'visit', file: `${file}-${value}` }))
  await Promise.all(asked)
  await vi.waitFor(() => expect(pool.events.filter(({ kind }) => kind === 'start-failed').length).toBeGreaterThan(0), {
    timeout: 30_000,
  })
  expect(pool.pool.refusal).toBeUndefined()
  expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
})
