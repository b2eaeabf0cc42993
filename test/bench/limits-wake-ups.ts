/** How soon a free slot or a due token of a limit is used: two boards, one of which waits while the other holds the only slot. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openBoard } from 'jobboard'
import { times } from './brief.ts'
import type { Goal } from './goals.ts'
import { median } from './spread.ts'

const SLOT_JOBS = times(200, 4)
const TOKEN_JOBS = times(60, 3)
const TOKENS_PER_SECOND = 20
/** The time in which the waiting board finds that the key has no room. */
const PARK_MS = 20
const GOAL_MS = 100

/** Measures and prints both times on a board. Returns their goals. */
export async function measureWakeUps(what: string, uri: string): Promise<Goal[]> {
  console.log(`\nhow late a free slot or a due token is used on ${what}, in ms`)
  const lates = { 'a free slot': await slotsOf(uri), 'a due token': await tokensOf(uri) }
  return Object.entries(lates).map(([name, all]) => {
    const p99 = all.toSorted((a, b) => a - b)[Math.ceil(all.length * 0.99) - 1]
    console.log(
      `  ${name}   median ${median(all).toFixed(1)}, p99 ${p99?.toFixed(1)}, most ${Math.max(...all).toFixed(1)}`,
    )
    return { what: `${name} on ${what} is used after, p99, in ms:`, value: p99, goal: { atMost: GOAL_MS } }
  })
}

/** Returns the times from the end of the only job that may run to the claim of the next one, by another board. */
async function slotsOf(uri: string): Promise<number[]> {
  await using first = await openBoard(uri)
  await using second = await openBoard(uri)
  await first.limits.set('one', { concurrency: 1 })
  for (let n = 0; n <= SLOT_JOBS; n += 1) await first.post('flow', { n }, { limits: ['one'] })
  const lates: number[] = []
  let [holder, waiter] = [first, second]
  let [claim] = await holder.claimNext()
  for (let n = 0; n < SLOT_JOBS; n += 1) {
    const next = waiter.claimNext().then(([granted]) => ({ granted, at: performance.now() }))
    await sleep(PARK_MS)
    await claim.consume()
    const ended = performance.now()
    const { granted, at } = await next
    // The waiting board may have its claim before the other has the answer to its end.
    lates.push(Math.max(0, at - ended))
    claim = granted
    ;[holder, waiter] = [waiter, holder]
  }
  await claim.consume()
  return lates
}

/** Returns by how much the times between starts are longer than the time in which a token comes back. */
async function tokensOf(uri: string): Promise<number[]> {
  await using board = await openBoard(uri)
  await board.limits.set('some', { rate: { limit: TOKENS_PER_SECOND, per: '1s' } })
  for (let n = 0; n <= TOKEN_JOBS; n += 1) await board.post('flow', { n }, { limits: ['some'] })
  const lates: number[] = []
  let last: number | undefined
  for (let n = 0; n <= TOKEN_JOBS; n += 1) {
    const [claim] = await board.claimNext()
    const at = performance.now()
    if (last !== undefined) lates.push(Math.max(0, at - last - 1_000 / TOKENS_PER_SECOND))
    last = at
    await claim.consume()
  }
  return lates
}
