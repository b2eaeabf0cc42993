/**
 * A process with a conductor, for bytes that others write beside it: `target.ts BOARD LOGBOOKS SEED STATE`. It posts one innocent
 * job after the other and reports when each is done, so a process that waits for that line sees one that hangs, or has
 * crashed. On a board in memory, which no other process can reach, it writes the bytes itself.
 *
 *     alive N      every 100 ms: the event loop turns
 *     done N       another innocent job is complete
 *     refused WHY  the innocent job could not be posted, or a look at the board failed; it is tried again
 *
 * Beside a board that is not damaged as a whole, nothing of this is refused, or the process ends.
 */
import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inspect } from 'node:util'
import { JobBoard } from '../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../src/board/backends/memory/index.ts'
import { type Job, openBoard } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { createDeferred, isSettledWithin } from '../../src/core/async/abort.ts'
import { schedule, startConductor } from '../../src/index.ts'
import { openPersistence } from '../../src/persistence/index.ts'
import { randomly } from '../support/random.ts'
import { overlapOn, recordPlanter } from './board-records.ts'
import { FLOW_OF_TARGETS } from './flow.ts'
import { lookByCommand, lookByDashboard, lookByExporter, lookByLibrary } from './looks.ts'
import { ENDED } from './real.ts'
import { FLOW, recordMaker } from './records.ts'

const ALIVE_MS = 100
/** Looking from outside takes longer than a job. */
const JOBS_PER_LOOK = 4
const MAX_ERROR_LINES = 200
const RECORDS_PER_ROUND = 3
/** Generous: it tells a schedule that is kept from firing from a slow machine. */
const MAX_FIRING_MS = 30_000
/** The time after which it is printed what an innocent job waits for. */
const SLOW_MS = 60_000

const [uri = '', logbooks = 'memory:', seed = '', state = 'whole'] = process.argv.slice(2)
const inMemory = uri.startsWith('memory:')

async function openTarget(): Promise<JobBoard> {
  if (!inMemory) return openBoard(uri)
  const board = new JobBoard(new MemoryBackend({ uri, space: memorySpace('fuzz') }))
  await boardInternals(board).open()
  await board.view()
  return board
}

const board = await openTarget()
const persistence = await openPersistence(logbooks)
const random = randomly(Number(seed))
const maker = recordMaker(random, 'msgpack')
const plantRecord = state === 'whole' ? await recordPlanter(board, maker, random) : async () => undefined
const innocent = schedule('innocent', { every: '1s' }, FLOW_OF_TARGETS, {}, { overlap: overlapOn(board) })
// So few slots that runs which never end are missed soon.
await using conductor = await startConductor({
  ...{ board, persistence, flows: [FLOW_OF_TARGETS], concurrency: 8 },
  removeLogbooksAfter: '1s',
  ...(state === 'whole' ? { schedules: [innocent] } : {}),
})
/** Resolves when the innocent schedule has fired once more. */
let fired = createDeferred()
conductor.on('fired', ({ schedule: id }) => {
  if (id !== innocent.id) return
  fired.resolve()
  fired = createDeferred()
})
// For whoever looks for the cause; a record that is reported again and again would be seen here, too.
let errors = 0
function report({ error }: { readonly error: Error }): void {
  errors += 1
  if (errors <= MAX_ERROR_LINES) console.log(`error ${inspect(error).replaceAll('\n', ' ').slice(0, 300)}`)
}
board.on('error', report)
conductor.on('error', report)
let alive = 0
setInterval(() => console.log(`alive ${++alive}`), ALIVE_MS)

let done = 0
let looks = 0
for (let round = 0; ; round += 1) {
  if (inMemory) for (let planted = 0; planted < 5; planted += 1) plantInMemory()
  try {
    for (let planted = 0; planted < RECORDS_PER_ROUND; planted += 1) await plantRecord()
    // The view reads in turns of the event loop, which a board in memory never waits for by itself.
    for await (const _ of board.jobs({ ensureFresh: true }));
    const job = await board.post(FLOW, {}, { priority: 'LOW', maxAttempts: 1 })
    const slow = setTimeout(() => void reportSlow(job), SLOW_MS)
    const end = await job.wait().finally(() => clearTimeout(slow))
    if (end !== 'COMPLETE') throw new Error(`the innocent job is ${end}: ${job.attempts.at(-1)?.reason}`)
    done += 1
    console.log(`done ${done}`)
    if (round % JOBS_PER_LOOK === 0) await look()
  } catch (error) {
    console.log(`refused ${inspect(error).replaceAll('\n', ' ').slice(0, 3_000)}`)
    if (state !== 'damaged') process.exit(1)
    // What is refused at once must not keep the event loop from turning.
    await nextTurn()
  }
}

/** Prints what a job waits for that is not done in time. */
async function reportSlow(job: Job): Promise<void> {
  const reason = await board.waitingFor(job).catch((error: unknown) => error)
  const { paused, connected } = board
  const { claimFault } = boardInternals(board)
  console.log(
    `slow ${inspect({ job: String(job), state: job.state, reason, claimFault, paused, connected, conductor: conductor.state })}`,
  )
}

/** Writes what a board in memory keeps, and no other process can reach. */
function plantInMemory(): void {
  const space = memorySpace('fuzz')
  space.putRaw(maker.posting())
  const job = Object(maker.altered(ENDED))
  space.history.add({ job: { ...job, uuid: `u${random.between(1, 20)}` }, keep: 100 })
  try {
    space.batches.create({
      uuid: randomUUID(),
      bytes: maker.record({ format: 1, value: { name: 'n', who: 'w', createdAt: 0, meta: {} } }),
    })
  } catch {
    // Only what cannot be encoded.
  }
}

/** Resolves when the innocent schedule has fired once more. */
async function nextFiring(): Promise<void> {
  if (!(await isSettledWithin(MAX_FIRING_MS, fired.promise)))
    throw new Error('the innocent schedule does not fire any more')
}

/** What commands and other processes do: list everything, on a board that is opened anew where there is one. */
async function look(): Promise<void> {
  await using other = inMemory ? undefined : await openBoard(uri, { create: false })
  const seen = other ?? board
  for await (const _ of seen.jobs({ ensureFresh: true }));
  for await (const _ of seen.trashed());
  await lookByLibrary(seen)
  if (state === 'damaged') return
  await lookByExporter(seen)
  await lookByDashboard(seen, persistence)
  if (!inMemory) await lookByCommand(uri, looks)
  looks += 1
  await nextFiring()
  for await (const { uuid } of persistence.listBooks({ limit: 50 }))
    await persistence.getBook(uuid).catch(() => undefined)
}
