/**
 * Measures for how long writes fail when the leader of three servers is killed: until the first write that succeeds again. And how soon the job of
 * a killed owner is taken over by another process of the same host: see `takeovers.ts`.
 */
import { ZooKeeper } from '../../src/zookeeper/index.ts'
import { startEnsemble } from '../support/ensemble.ts'
import { startPostgres } from '../support/postgres.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { benchFolder, sqliteUri } from './sqlite-places.ts'
import { measureTakeovers } from './takeovers.ts'

const ROUNDS = times(5, 1)
const GOAL_MS = 1_500

export default async function failover(): Promise<void> {
  await using ensemble = await startEnsemble()
  const took: { first: number; reattached: number; lost: number; unknown: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await using client = new ZooKeeper({ hosts: ensemble.hosts })
    await client.connect()
    const session = client.session?.id
    const { path } = await client.create('/failover-', null, { sequential: true })
    const leader = await ensemble.leader()
    const begin = performance.now()
    let reattached = Number.NaN
    client.on('state', ({ state }) => {
      if (state === 'connected') reattached = performance.now() - begin
    })
    await leader.kill()
    const { first, unknown } = await untilWritten(client, path, begin)
    took.push({ first, reattached, unknown, lost: client.session?.id === session ? 0 : 1 })
    await leader.restart()
  }
  console.log(`\nleader of three servers killed, ${ROUNDS} times; milliseconds from the kill to the first write`)
  for (const { first, reattached, lost, unknown } of took) {
    const where = Number.isNaN(reattached) ? 'was on a follower' : `connected again after ${reattached.toFixed(0)}`
    const fate = lost ? 'session LOST' : 'same session'
    console.log(`  ${first.toFixed(0).padStart(6)}   ${where}, ${fate}, ${unknown} writes of unknown outcome before`)
  }
  const worst = Math.max(...took.map(({ first }) => first))
  const what = 'longest time from the kill of the leader to the next write, in ms:'
  printGoals([{ what, value: worst, goal: { atMost: GOAL_MS } }, ...(await takeovers())])
}

async function takeovers(): Promise<Goal[]> {
  await using folder = await benchFolder()
  const inFile = await measureTakeovers('an SQLite file', sqliteUri(folder.path, 'takeovers'))
  await using postgres = await startPostgres()
  return [inFile, await measureTakeovers('Postgres', postgres.uri)]
}

/** Writes again and again: a write that went to a dying server does not count. */
async function untilWritten(
  client: ZooKeeper,
  path: string,
  begin: number,
): Promise<{ first: number; unknown: number }> {
  for (let unknown = 0; ; unknown++) {
    try {
      await client.setData(path, null)
      return { first: performance.now() - begin, unknown }
    } catch {
      // Not connected, or the outcome is unknown: the next one waits for a connection by itself.
    }
  }
}
