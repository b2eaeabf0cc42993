/** A board that answers later than a conductor waits for it. */
import { expect } from 'vitest'
import { boardInternals } from '../../../src/board/api/board-internals.ts'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, MemorySpace } from '../../../src/board/backends/memory/index.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { systemAlarmClock } from '../../../src/core/time.ts'
import { input, linear, startConductor, task } from '../../../src/index.ts'
import { variant } from '../../variant.ts'

variant(
  'a call that was given up claims nothing: a conductor that stops when it has no work runs all jobs, once',
  async () => {
    const space = new MemorySpace({ clock: systemAlarmClock })
    const open = async (backend = new MemoryBackend({ uri: 'memory:', space })) => {
      const board = new JobBoard(backend, {})
      await boardInternals(board).open()
      return board
    }
    const runs: number[] = []
    const flow = linear('noted', input(), task('note', { execute: (_, { run }) => void runs.push(run) }))
    await using poster = await open()
    for (let n = 0; n < 4; n += 1) await poster.post(flow, {})
    const backend = new MemoryBackend({ uri: 'memory:', space })
    const answered = createDeferred()
    const list = backend.jobs.list.bind(backend.jobs)
    backend.jobs.list = async () => {
      await answered.promise
      return list()
    }
    await using board = await open(backend)
    const claimNext = board.claimNext.bind(board)
    board.claimNext = ((...options: Parameters<typeof claimNext>) => {
      const claiming = claimNext(...options)
      // The first call is given up while it waits for the listing.
      claiming.catch(() => answered.resolve())
      return claiming
    }) as typeof board.claimNext
    await using conductor = await startConductor({
      board,
      persistence: 'memory:',
      flows: [flow],
      burst: true,
      concurrency: 4,
    })
    await conductor.stopped
    expect(runs).toEqual([1, 1, 1, 1])
  },
)
