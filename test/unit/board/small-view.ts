/** Boards that keep few postings in memory, and count what they read. */
import type { Backend } from '../../../src/board/backend.ts'
import type { BoardOptions } from '../../../src/board/index.ts'
import { JobBoard } from '../../../src/board/job-board.ts'
import { MemoryBackend, memorySpace } from '../../../src/board/memory/index.ts'

export class CountingBackend extends MemoryBackend {
  /** The ids of each read. */
  readonly reads: (readonly string[])[] = []

  constructor(name: string) {
    super({ uri: `memory:${name}`, space: memorySpace(name) })
  }

  override read(ids: readonly string[]): ReturnType<Backend['read']> {
    this.reads.push(ids)
    return super.read(ids)
  }
}

export async function openSmall(
  name: string,
  { backend = new CountingBackend(name), ...options }: BoardOptions & { backend?: Backend },
): Promise<JobBoard> {
  const board = new JobBoard(backend, options)
  await board.open()
  return board
}
