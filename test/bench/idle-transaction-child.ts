/**
 * One process of `bench -- idle-transaction`: `idle-transaction-child.ts ROLE URI COUNT`. In each round it posts so many jobs, or claims and consumes them.
 */
import { openBoard } from '../../src/board/open.ts'
import { repeatWhenTold } from './part-child.ts'
import { consumeJobs, postJobs } from './plain-jobs.ts'

const [role = '', uri = '', count = ''] = process.argv.slice(2)

await using board = await openBoard(uri, { who: `${role} ${process.pid}` })
await repeatWhenTold(() => (role === 'work' ? consumeJobs : postJobs)(board, Number(count)))
