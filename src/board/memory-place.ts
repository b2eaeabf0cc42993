/** Memory boards with a clock of their own, which a test advances instead of waiting. */
import type { AlarmClock } from '../core/time.ts'
import { boardInternals } from './api/board-internals.ts'
import { JobBoard } from './api/job-board.ts'
import type { BoardOptions } from './api/options.ts'
import { MemoryBackend, MemorySpace } from './backends/memory/index.ts'

/** Returns a function that opens boards which share their jobs, as boards of several processes on one server do. */
export function memoryTestBackend(options: { readonly clock: AlarmClock }): {
  open(options?: BoardOptions): Promise<JobBoard>
} {
  const space = new MemorySpace(options)
  return {
    open: async (options = {}) => {
      const board = new JobBoard(new MemoryBackend({ uri: 'memory:', space }), options)
      await boardInternals(board).open()
      return board
    },
  }
}
