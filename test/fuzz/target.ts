/**
 * A process with a conductor, for bytes that others write beside it: `target.ts BOARD SEED`. It posts one innocent job after
 * the other and says when each is done, so whoever waits for that line sees a process that hangs, or has crashed. On a board
 * in memory, which nobody else can reach, it writes the bytes itself.
 */
import { openBoard } from '../../src/board/index.ts'
import { JobBoard } from '../../src/board/job-board.ts'
import { MemoryBackend, memorySpace } from '../../src/board/memory/index.ts'
import { input, linear, startConductor, task } from '../../src/index.ts'
import { randomly } from '../support/random.ts'
import { FLOW, recordMaker } from './records.ts'

const [uri = '', seed = ''] = process.argv.slice(2)
const flow = linear(FLOW, input(), task('work', { execute: () => 'done' }))
const inMemory = uri.startsWith('memory:')

async function openTarget(): Promise<JobBoard> {
  if (!inMemory) return openBoard(uri)
  const board = new JobBoard(new MemoryBackend({ uri, space: memorySpace('fuzz') }))
  await board.open()
  return board
}

const board = await openTarget()
const maker = recordMaker(randomly(Number(seed)), 'msgpack')
await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [flow] })
for (let done = 1; ; done += 1) {
  if (inMemory) for (let planted = 0; planted < 5; planted += 1) memorySpace('fuzz').putRaw(maker.posting())
  // The view reads in turns of the event loop, which a board in memory never waits for by itself.
  for await (const _ of board.jobs({ ensureFresh: true }));
  const job = await board.post(FLOW, {}, { priority: 'LOW' })
  await job.wait()
  for await (const _ of board.trashed()) break
  await board.entities('conductor')
  console.log(`done ${done}`)
}
