/**
 * An importer. Entries of one account are imported one after the other, in their order. Accounts are imported side by
 * side. Each job owns its account, an exclusive resource, while it runs.
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
    // The first ones are slow: without the resource the later ones would overtake them.
    for (let left = 100 - 20 * number; left > 0; left -= 1) await turn()
    balances.set(account, [...(balances.get(account) ?? []), number])
    busy.delete(account)
  },
})
const entry = linear('entry', input<Entry>(), book)

await using board = await openBoard('memory:')
// The entries, as a file would have them.
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
