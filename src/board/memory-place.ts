/** A place for memory boards that has a clock of its own: what a test turns instead of waiting. */
import type { AlarmClock } from '../core/alarm-clock.ts'
import { JobBoard } from './api/job-board.ts'
import type { BoardOptions } from './api/options.ts'
import { MemoryBackend, MemorySpace } from './backends/memory/index.ts'

/** @internal Opens boards that all see the same jobs, as those of several processes at one server do. */
export function memoryTestBackend(options: { readonly clock: AlarmClock }): {
  open(options?: BoardOptions): Promise<JobBoard>
} {
  const space = new MemorySpace(options)
  return {
    open: async (options = {}) => {
      const board = new JobBoard(new MemoryBackend({ uri: 'memory:', space }), options)
      await board.open()
      return board
    },
  }
}
