/**
 * A process that uses a board and logbooks in one file: `power-cut-child.ts FILE SYNCHRONOUS SEED ROUNDS first|second`. The first one starts
 * the second one, which dies in the middle of its work; then the first one closes the file and opens it again.
 *
 * It says what it begins (`consume UUID`), and what was acknowledged (`consumed UUID`), a line each. A line is one write: the caller traces writes,
 * and so knows what had been acknowledged at each moment.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { type Claim, type JobBoard, openBoard } from '../../../src/board/index.ts'
import { newUuid } from '../../../src/core/uuid.ts'
import { openPersistence, type Persistence } from '../../../src/persistence/index.ts'
import { atom, requestOf } from '../../persistence/flows.ts'
import { randomly } from '../../support/random.ts'

const [script = '', file = '', synchronous = '', seed = '', rounds = '', role = ''] = process.argv.slice(1)
const LANES = 3
const MAX_RECORDS = 3
/** Large enough for a row of its own in the file. */
const LARGE = 'x'.repeat(20_000)

const isFirst = role === 'first'
const random = randomly(Number(seed) + (isFirst ? 0 : 1))
const say = (line: string) => writeSync(1, `${line}\n`)

async function post(board: JobBoard): Promise<void> {
  const uuid = newUuid()
  const text = random.next() < 0.2 ? LARGE : ''
  say(`post ${uuid}`)
  await board.post('flow', { text }, { uuid, maxAttempts: 10 })
  say(`posted ${uuid}`)
}

async function record({ job: { uuid }, run }: Claim, books: Persistence): Promise<void> {
  say(`acquire ${uuid} ${run}`)
  await using log = await books.acquire(requestOf(uuid, run))
  say(`acquired ${uuid} ${run}`)
  for (let number = 0; number < random.between(1, MAX_RECORDS); number += 1) {
    const name = `${run}-${number}`
    say(`record ${uuid} ${name}`)
    await log.write({ atoms: [atom(name, { result: random.next() < 0.2 ? LARGE : name })] })
    say(`recorded ${uuid} ${name}`)
  }
}

async function settle(claim: Claim): Promise<void> {
  const { uuid } = claim.job
  const how = random.pick(['consume', 'consume', 'abandon', 'trash', 'keep'] as const)
  if (how === 'keep') return
  say(`${how} ${uuid}`)
  await claim[how]()
  say(`${how}${how.endsWith('e') ? 'd' : 'ed'} ${uuid}`)
}

async function work(board: JobBoard, books: Persistence): Promise<void> {
  for (let round = 0; round < Number(rounds); round += 1) {
    await post(board)
    // There may be none: another lane, or the other process, has it.
    const claims = await board.claimNext({ max: 2, timeout: 0 }).catch(() => [])
    for (const { job, run } of claims) say(`claimed ${job.uuid} ${run}`)
    for (const claim of claims) {
      if (random.next() < 0.5) await record(claim, books)
      await settle(claim)
    }
  }
}

async function useFile(): Promise<void> {
  // A slow machine must not end the session.
  await using board = await openBoard(`sqlite:${file}?synchronous=${synchronous}&sessionTimeout=10m`, { who: role })
  await using books = await openPersistence(`sqlite:${file}?synchronous=${synchronous}`)
  await Promise.all(Array.from({ length: LANES }, () => work(board, books)))
  if (!isFirst) process.kill(process.pid, 'SIGKILL')
}

const args = [script, file, synchronous, seed, rounds, 'second']
const second = isFirst ? once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit') : undefined
await useFile()
await second
if (isFirst) await useFile()
