/** Another system refuses a former owner by the fence, a number that grows with every claim. */
import { openBoard } from 'jobboard'

/** An account in another system, which stores the highest fence that it has seen. */
const account = {
  balance: 0,
  fence: 0n,
  set(balance: number, { fence }: { fence: bigint }) {
    if (fence < this.fence) return 'refused'
    this.fence = fence
    this.balance = balance
    return 'booked'
  },
}

await using board = await openBoard('memory:bank', { who: 'heir' })
await board.post('book', { balance: 30 })

const absent = await openBoard('memory:bank', { who: 'absent' })
const [former] = await absent.claimNext()
// For example on a machine that was suspended: its session expires before its code notices.
await absent.close()

const [claim] = await board.claimNext()
console.log(`run ${claim.run}, ${claim.who}: ${account.set(30, claim)}`)
console.log(`run ${former.run}, ${former.who}: ${account.set(-1, former)}`)
console.log(`balance: ${account.balance}`)
