/** Results of a job that moves between the reads. */
import { expect, test } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, MemorySpace } from '../../../src/board/backends/memory/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { all } from '../jobs.ts'
import { overrideRole } from '../override-role.ts'

test('a job that is restored and done after the history was read is done', async () => {
  const space = new MemorySpace()
  const backend = new MemoryBackend({ uri: 'memory:', space })
  await using here = new JobBoard(backend)
  await using there = new JobBoard(new MemoryBackend({ uri: 'memory:', space }))
  for (const board of [here, there]) await boardInternals(board).open()
  const job = await there.post('flow', {})
  const { uuid } = job
  await (await there.claim(job)).trash()
  let reads = 0
  overrideRole(backend, 'history', ({ find }) => ({
    find: async (uuids) => {
      const found = await find(uuids)
      reads += 1
      if (reads > 1) return found
      for (const trashed of await all(there.trashed())) await there.restore(trashed)
      const [claim] = await there.claimNext()
      await claim.consume({ results: { run: 2 } })
      return found
    },
  }))
  expect(await here.result(uuid)).toEqual({ uuid, results: { run: 2 } })
})
