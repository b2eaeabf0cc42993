/** What it costs to know of jobs that run elsewhere: a read for those that somebody holds, nothing for the others. */
import { randomUUID } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../../src/board/backends/memory/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { claimed, refresh } from '../jobs.ts'
import { overrideRole } from '../override-role.ts'

class CountingBackend extends MemoryBackend {
  readonly asked: string[] = []

  constructor(...args: ConstructorParameters<typeof MemoryBackend>) {
    super(...args)
    overrideRole(this, 'jobs', (jobs) => ({
      read: (ids) => {
        this.asked.push(...ids)
        return jobs.read(ids)
      },
    }))
  }
}

async function twoBoards() {
  const name = randomUUID()
  const [here, there] = [1, 2].map(() => new CountingBackend({ uri: `memory:${name}`, space: memorySpace(name) }))
  if (!here || !there) throw new Error('two backends were made')
  const boards = [new JobBoard(here), new JobBoard(there)] as const
  await Promise.all(boards.map((board) => boardInternals(board).open()))
  await Promise.all(boards.map((board) => board.view()))
  return { boards, asked: here.asked }
}

test('jobs that no caller here holds are not read when others claim them', async () => {
  const { boards, asked } = await twoBoards()
  const [here, there] = boards
  for (const name of ['a', 'b', 'c']) await there.post('flow', {}, { name })
  await refresh(here)
  const held = await here.find((await there.post('flow', {}, { name: 'held' })).uuid)
  asked.length = 0
  for (const name of ['a', 'b', 'c', 'held']) await claimed(there, name)
  await vi.waitFor(() => expect(held.runs).toBe(1), 60_000)
  expect(asked).toHaveLength(1)
  await Promise.all(boards.map((board) => board.close()))
})

test('what this process claims itself is not read', async () => {
  const { boards, asked } = await twoBoards()
  const [here] = boards
  const own = await here.post('flow', {}, { name: 'own' })
  const other = await here.post('flow', {}, { name: 'other' })
  await claimed(here, 'own')
  await claimed(boards[1], 'other')
  await vi.waitFor(() => expect(other.runs).toBe(1), 60_000)
  expect(own.runs).toBe(1)
  expect(asked).toHaveLength(1)
  await Promise.all(boards.map((board) => board.close()))
})
