/**
 * An importer: what concerns one account is done in the order in which it came, one after the other; accounts go side by
 * side. Nothing waits but what has to: each job owns its account while it runs.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { input, linear, openBoard, startConductor, task } from 'jobboard'

interface Entry {
  readonly account: string
  readonly number: number
}

const balances = new Map<string, number[]>()
const busy = new Set<string>()
let most = 0

const book = task('book', {
  requires: ['account', 'number'],
  execute: async ({ account, number }: Entry) => {
    if (busy.has(account)) throw new Error(`two at once on ${account}`)
    busy.add(account)
    most = Math.max(most, busy.size)
    // Slow ones first: without the resource the later ones would overtake them.
    for (let left = 100 - 20 * number; left > 0; left -= 1) await turn()
    balances.set(account, [...(balances.get(account) ?? []), number])
    busy.delete(account)
  },
})
const entry = linear('entry', input<Entry>(), book)

await using board = await openBoard('memory:')
// As a file has them, from which they are read.
for (const number of [1, 2, 3, 4])
  for (const account of ['Ada', 'Grace', 'Joan'])
    await board.post(entry, { account, number }, { resources: { exclusive: [`account/${account}`] } })

await using conductor = await startConductor({
  board,
  persistence: 'memory:',
  flows: [entry],
  concurrency: 8,
  burst: true,
})
await conductor.stopped
console.log(balances)
console.log(`${most} accounts side by side`)
