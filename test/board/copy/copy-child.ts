/** A process that copies a board, and kills itself when so many things of a kind are copied: FROM TO KIND COUNT. */
import { copyBoard, openSide } from '../../../src/board/internal.ts'

const [, , from = '', to = '', last = '', count = ''] = process.argv
const signal = new AbortController().signal
const sides = { from: await openSide(from), to: await openSide(to) }
await copyBoard(sides, {
  signal,
  onSkipped: ({ error }) => {
    throw error
  },
  onProgress: (kind, { copied }) => {
    if (kind === last && copied === Number(count)) process.kill(process.pid, 'SIGKILL')
  },
})
