/** At most one job with a key is on the board: posting it again returns the existing job. */
import { openBoard } from 'jobboard'

await using board = await openBoard('memory:')

// Three processes notice the same change at the same time.
const posts = await Promise.all(['a', 'b', 'c'].map((who) => board.post('index', { who }, { key: 'index:shop' })))
console.log(posts.map(({ created }) => created))
console.log(`${await board.countJobs()} job, ${new Set(posts.map(({ uuid }) => uuid)).size} uuid`)

const [claim] = await board.claimNext()
console.log(`while it runs, too: ${(await board.post('index', {}, { key: 'index:shop' })).created}`)
await claim.consume()
console.log(`and not any more when it is done: ${(await board.post('index', {}, { key: 'index:shop' })).created}`)
