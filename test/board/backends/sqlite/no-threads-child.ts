/** A process that cannot start threads, and posts so much that its log must be written back; it says how long the log is at the end. */
import { statSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import threads from 'node:worker_threads'

class NoThread {
  constructor() {
    throw Object.assign(new Error('Worker initialization failure: EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' })
  }
}
Object.assign(threads, { Worker: NoThread })
syncBuiltinESMExports()
const { openBoard } = await import('../../../../src/board/index.ts')

const [uri = ''] = process.argv.slice(2)
await using board = await openBoard(uri)
for (let job = 0; job < 200; job += 1) await board.post('flow', { text: 'x'.repeat(200_000) })
console.log(statSync(`${new URL(uri.replace('sqlite:', 'file:')).pathname}-wal`).size)
