/** What becomes of a post that replaces a job, and whose answer is lost. */
import { JobBoard } from '../../src/board/api/job-board.ts'
import type { Backend } from '../../src/board/contract/index.ts'
import type { PostedJob } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { refresh } from './jobs.ts'
import { overrideRole } from './override-role.ts'

/** Opens a board whose replacements are announced before they are sent. */
export async function openReplacing(backend: Backend, beforeReplacing: () => void): Promise<JobBoard> {
  overrideRole(backend, 'keys', (keys) => ({
    replace: (request) => {
      beforeReplacing()
      return keys.replace(request)
    },
  }))
  const board = new JobBoard(backend)
  await boardInternals(board).open()
  await board.view()
  return board
}

/** Replaces a job, and resolves when the server has done it, with the post: its answer is lost. */
export async function replaceUnheard(
  board: JobBoard,
  other: JobBoard,
): Promise<{ readonly replacing: Promise<PostedJob>; readonly uuid: string }> {
  const { uuid, ref } = await other.post('flow', { n: 1 }, { key: 'sync', name: 'old' })
  const replacing = board.post('flow', { n: 2 }, { key: { name: 'sync', on: 'replace', for: '1h' }, name: 'new' })
  replacing.catch(() => undefined)
  while ((await other.find(ref)).name === 'old') await refresh(other)
  return { replacing, uuid }
}
