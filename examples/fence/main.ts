/** A former owner that does not know it yet: a system outside refuses it by the fence, which grows with every claim. */
import { openBoard } from 'jobboard'

/** An account elsewhere, which remembers the greatest fence that it has seen. */
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
// A machine that was suspended, say: its session is over before its code knows.
await absent.close()

const [claim] = await board.claimNext()
console.log(`run ${claim.run}, ${claim.who}: ${account.set(30, claim)}`)
console.log(`run ${former.run}, ${former.who}: ${account.set(-1, former)}`)
console.log(`balance: ${account.balance}`)
