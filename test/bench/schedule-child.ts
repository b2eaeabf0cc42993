/**
 * One process of `bench -- schedule`: `schedule-child.ts ROLE NUMBER URI NAME`. `fire`: so many conductors, each on a board of its own, that fire
 * schedules and know none of their flows; at its end it says how many jobs it has posted, and with how many transactions. `consume`: claims
 * and consumes the jobs.
 */
import { RecordStore } from '../../src/board/records/record-store.ts'
import { input, type JobBoard, linear, openBoard, openPersistence, startConductor, task } from '../../src/index.ts'
import { whenTold } from './part-child.ts'

const WIDTH = 100

const other = linear('other', input(), task('none', { execute: () => undefined }))
const [role = '', count = '', uri = '', name = ''] = process.argv.slice(2)
let transactions = 0
let fired = 0

countWrites()
await (role === 'fire' ? fire() : consume())

async function fire(): Promise<void> {
  await using persistence = await openPersistence('memory:')
  const boards = await Promise.all(Array.from({ length: Number(count) }, () => openBoard(uri)))
  const start = (board: JobBoard, index: number) =>
    startConductor({ board, persistence, flows: [other], name: `${name}-${index}` })
  const conductors = await Promise.all(boards.map(start))
  const onFired = () => {
    fired += 1
  }
  for (const conductor of conductors) conductor.on('fired', onFired)
  await whenTold(async (end) => {
    // What was done at the start is none of it.
    transactions = fired = 0
    await end()
    return { transactions, fired }
  })
  await Promise.all(conductors.map((conductor) => conductor.stop()))
  await Promise.all(boards.map((board) => board.close()))
}

async function consume(): Promise<void> {
  await using board = await openBoard(uri)
  const stop = new AbortController()
  const consuming = consumeUntil(board, stop.signal)
  await whenTold((end) => end())
  stop.abort()
  await consuming
}

async function consumeUntil(board: JobBoard, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const claims = await board.claimNext({ max: WIDTH, signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error
      return []
    })
    await Promise.all(claims.map((claim) => claim.consume()))
  }
}

/** Counts the writes of records, refused ones, too. */
function countWrites(): void {
  const { write } = RecordStore.prototype
  RecordStore.prototype.write = function counted(...args) {
    transactions += 1
    return write.apply(this, args)
  }
}
