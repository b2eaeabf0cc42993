/**
 * An owner of `bench -- failover`: `takeover-child.ts URI`. It uses the package as it is published, claims a job, prints `ready`, and keeps the
 * job until it is killed.
 */
import { openBoard } from 'jobboard'
import { whenTold } from './part-child.ts'

const [uri = ''] = process.argv.slice(2)

await using board = await openBoard(uri)
await board.claimNext()
await whenTold((end) => end())
