/**
 * What a heartbeat costs a Postgres server, with 10 and with 1,000 sessions on one board: processor time of the server. The sessions are spread
 * over ten connections, so that both measurements run in the same processes.
 */
import { openBoard } from 'jobboard'
import pg from 'pg'
import { startPostgres } from '../support/postgres.ts'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import { processorTime } from './processor-time.ts'
import { median, spread } from './spread.ts'

const FEW = 10
const MANY = times(1_000, 50)
const CONNECTIONS = 10
const HEARTBEATS = times(10_000, 200)
const ROUNDS = times(5, 1)
const GOAL_RATIO = 1.3
/** A session sends three heartbeats in its time, which is 30 s by default. */
const PER_MINUTE = 6

export default async function sessions(): Promise<void> {
  await using server = await startPostgres()
  const boards = [await openSessions(server.uri, FEW), await openSessions(server.uri, MANY)]
  const costs = boards.map((): number[] => [])
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [at, board] of boards.entries()) {
      const before = await processorTime(server.pid)
      await board.beat()
      const after = await processorTime(server.pid)
      // The first round compiles the functions and makes the plans.
      if (round > 0) costs[at]?.push(((after ?? Number.NaN) - (before ?? Number.NaN)) / HEARTBEATS)
    }
  }
  console.log(`\n${HEARTBEATS} heartbeats, ${ROUNDS} rounds; processor time of the server`)
  for (const [at, { count }] of boards.entries()) {
    const figures = costs[at] ?? []
    const perMinute = median(figures) * count * PER_MINUTE
    const each = spread(
      figures.map((ms) => ms * 1_000),
      0,
    )
    console.log(
      `  ${String(count).padStart(5)} sessions: ${each} µs a heartbeat, ${perMinute.toFixed(0)} ms a minute for all`,
    )
  }
  for (const { end } of boards) await end()
  const [few = Number.NaN, many = Number.NaN] = costs.map(median)
  const what = `cost of a heartbeat with ${MANY} sessions, as a multiple of the cost with ${FEW}:`
  printGoals([{ what, value: many / few, goal: { atMost: GOAL_RATIO } }])
}

/** Opens so many sessions on a new board. */
async function openSessions(uri: string, count: number) {
  const name = `sessions-${count}`
  await (await openBoard(`${uri}?board=${name}`)).close()
  const clients = Array.from({ length: CONNECTIONS }, () => new pg.Client({ connectionString: uri }))
  await Promise.all(clients.map((client) => client.connect()))
  const open = `SELECT jobboard.open_session((SELECT id FROM jobboard.boards WHERE name = $1), 'owner', 86400000, true, NULL, NULL) AS id`
  const openOn = async (client: pg.Client) => {
    const ids: number[] = []
    while (ids.length < count / CONNECTIONS) ids.push(Number((await client.query(open, [name])).rows[0]?.id))
    return ids
  }
  const ids = await Promise.all(clients.map(openOn))
  const beat = { name: 'beat', text: 'SELECT jobboard.renew_session($1) AS watched' }
  return {
    count,
    beat: () =>
      Promise.all(
        clients.map(async (client, at) => {
          const own = ids[at] ?? []
          for (let n = 0; n < HEARTBEATS / CONNECTIONS; n += 1) {
            const { rows } = await client.query({ ...beat, values: [own[n % own.length]] })
            if (!rows[0]?.watched) throw new Error('a session is over')
          }
        }),
      ),
    end: () => Promise.all(clients.map((client) => client.end())),
  }
}
