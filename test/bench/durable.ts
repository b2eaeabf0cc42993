/**
 * Durable flows of two steps per second, the result of each step recorded before the next one starts: one process that posts
 * and one that runs them, end to end. Ours, with board and logbooks in one Postgres and in one SQLite file, beside DBOS on the
 * same Postgres and Restate on its own server, with the same number of flows side by side. They take turns, several rounds after
 * one that does not count.
 */
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../support/build.ts'
import { nodeFolder } from '../support/nodes.ts'
import { ensureInstalled } from '../support/npm-folder.ts'
import { freePort } from '../support/ports.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { type Part, startPart } from './part.ts'
import { DURABLE_PEERS } from './peers-folder.ts'
import { processorTime } from './processor-time.ts'
import { type RestateServer, startRestate } from './restate-server.ts'
import { median, spread } from './spread.ts'
import { benchFolder, sqliteUri } from './sqlite-places.ts'

const OURS = join(ROOT, 'test/bench/conductor-child.ts')
const THEIRS = join(ROOT, 'test/bench/durable-child.ts')
/** Flows posted side by side, and run side by side. */
const WIDTH = 128
const ROUNDS = times(5, 1)

interface Contender {
  readonly what: string
  readonly settings: string
  /** In a round; fewer where they take longer. */
  readonly flows: number
  /** Of the server's process; undefined where there is no server. */
  readonly pid: number | undefined
  /** Starts the processes, of which the last is the last to be ready, on a place named after the round. */
  start(round: string, flows: number): Promise<Running>
}

interface Running {
  /** All flows are done when all of these are. */
  readonly parts: readonly Part[]
  /** What goes on until it is ended. */
  readonly services?: readonly Part[]
}

/** One round. */
interface Measured {
  readonly perSecond: number
  /** Microseconds of processor time per flow, of all processes and the server. */
  readonly cpu: number
}

export default async function durable(): Promise<void> {
  await ensureInstalled(DURABLE_PEERS, { because: 'the benchmark compares with DBOS and Restate' })
  await using postgres = await startPostgres()
  await using folder = await benchFolder()
  const node = await nodeForRestate()
  await using restate = node === undefined ? undefined : await startRestate()
  const ours = board(postgres)
  const inFile = boardInFile(folder.path)
  const dbos = [dbosQueue(postgres), dbosDirect(postgres)]
  const theirs = node === undefined || restate === undefined ? [] : [restateService(restate, node)]
  const all = new Map([ours, inFile, ...dbos, ...theirs].map((contender) => [contender, [] as Measured[]]))
  console.log(`Node ${process.version}, ${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)} at the start`)
  for (const [contender] of all) await measure(contender, 'warm_up')
  const contenders = [...all.keys()]
  for (let round = 0; round < ROUNDS; round += 1) {
    const first = round % contenders.length
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)])
      all.get(contender)?.push(await measure(contender, `round_${round}`))
  }
  print(all)
  const rate = (contender: Contender) => median((all.get(contender) ?? []).map(({ perSecond }) => perSecond))
  const compared = (peer: string, rates: readonly number[], atLeast: number): Goal => ({
    what: `durable flows of two steps per second, times ${peer}:`,
    value: rates.length === 0 ? undefined : rate(ours) / Math.max(...rates),
    goal: { atLeast },
  })
  printGoals([
    compared("DBOS's faster way", dbos.map(rate), 6),
    compared("Restate's", theirs.map(rate), 4),
    {
      what: 'durable flows of two steps per second in an SQLite file, synchronous=FULL, times our Postgres board:',
      value: rate(inFile) / rate(ours),
      goal: { atLeast: 1 },
    },
  ])
}

interface NodeProgram {
  readonly path: string
  readonly version: string
}

/** On Node 20 Restate's SDK stops in the middle: its invocations wait until they are aborted, and calls do not end. */
async function nodeForRestate(): Promise<NodeProgram | undefined> {
  const { execPath, version, versions } = process
  if (Number.parseInt(versions.node, 10) >= 22) return { path: execPath, version }
  try {
    return { path: join(await nodeFolder('24'), 'node'), version: 'v24' }
  } catch (error) {
    console.log(
      `Restate is not measured, its SDK needs Node 22 or newer: ${error instanceof Error ? error.message : error}`,
    )
    return undefined
  }
}

function board({ version, uri, pid }: PostgresServer): Contender {
  return {
    what: `this board and its conductor on Postgres ${version}`,
    settings: `board and logbooks in one database, conductor with ${WIDTH} slots`,
    flows: times(10_000, 200),
    pid,
    start: async (round, flows) => {
      const start = (role: string) =>
        startPart(OURS, [role, `${uri}?board=${round}`, uri, String(flows), String(WIDTH)])
      return { parts: [await start('conduct'), await start('post')] }
    },
  }
}

function boardInFile(folder: string): Contender {
  return {
    what: 'this board and its conductor in an SQLite file',
    settings: `board and logbooks in one file, synchronous=FULL, conductor with ${WIDTH} slots`,
    flows: times(10_000, 200),
    pid: undefined,
    start: async (round, flows) => {
      const uri = sqliteUri(folder, round)
      const start = (role: string) => startPart(OURS, [role, uri, uri, String(flows), String(WIDTH)])
      return { parts: [await start('conduct'), await start('post')] }
    },
  }
}

function dbosQueue({ version, uri, pid }: PostgresServer): Contender {
  return {
    what: `DBOS 5.3.0 on Postgres ${version}, a queue`,
    settings: `DBOSClient.enqueue; workerConcurrency ${WIDTH}, minPollingIntervalMs 10, systemDatabasePoolSize 20`,
    flows: times(3_000, 100),
    pid,
    start: async (round, flows) => {
      const start = (role: string) =>
        startPart(THEIRS, [role, uri, `dbos_queue_${round}`, String(flows), String(WIDTH)])
      return { parts: [await start('dbos-work'), await start('dbos-enqueue')] }
    },
  }
}

function dbosDirect({ version, uri, pid }: PostgresServer): Contender {
  return {
    what: `DBOS 5.3.0 on Postgres ${version}, no queue`,
    settings: `startWorkflow and getResult in one process, ${WIDTH} side by side, systemDatabasePoolSize 20`,
    flows: times(3_000, 100),
    pid,
    start: async (round, flows) => {
      const args = ['dbos-start', uri, `dbos_direct_${round}`, String(flows), String(WIDTH)]
      return { parts: [await startPart(THEIRS, args)] }
    },
  }
}

function restateService({ ingress, pid, register }: RestateServer, node: NodeProgram): Contender {
  const start = (role: string, where: string, round: string, flows: number) =>
    startPart(THEIRS, [role, where, `flows_${round}`, String(flows), String(WIDTH)], { node: node.path })
  return {
    what: 'Restate 1.7.12, a server of its own',
    settings: `SDK 1.17.2 and its client in two processes with Node ${node.version}, ${WIDTH} calls side by side; the server's defaults, fsync`,
    flows: times(3_000, 100),
    pid,
    start: async (round, flows) => {
      const port = await freePort()
      const service = await start('restate-serve', String(port), round, flows)
      await register(port)
      return { parts: [await start('restate-call', ingress, round, flows)], services: [service] }
    },
  }
}

async function measure({ flows, pid, start }: Contender, round: string): Promise<Measured> {
  const { parts, services = [] } = await start(round, flows)
  try {
    const serving = services.map((part) => part.go())
    const before = await usedBy(pid)
    const begin = performance.now()
    const dones = await Promise.all(parts.map((part) => part.go()))
    const after = await usedBy(pid)
    for (const part of services) part.end()
    const used = [...dones, ...(await Promise.all(serving))].reduce((sum, { cpu }) => sum + cpu, 0)
    const server = (after - before) * 1_000
    const took = Math.max(...dones.map(({ at }) => at)) - begin
    return { perSecond: (flows * 1_000) / took, cpu: (used + server) / flows }
  } finally {
    for (const part of [...parts, ...services]) await part[Symbol.asyncDispose]()
  }
}

/** Returns the milliseconds of processor time that a server has used: none where there is none. */
async function usedBy(pid: number | undefined): Promise<number> {
  return pid === undefined ? 0 : ((await processorTime(pid)) ?? Number.NaN)
}

function print(all: ReadonlyMap<Contender, readonly Measured[]>): void {
  console.log(
    `\ndurable flows of two steps; the median of ${ROUNDS} rounds (range); processor time per flow, servers included`,
  )
  for (const [{ what, settings, flows }, rounds] of all) {
    const perSecond = spread(
      rounds.map((round) => round.perSecond),
      0,
    )
    const cpu = spread(
      rounds.map((round) => round.cpu),
      0,
    )
    console.log(`  ${what.padEnd(46)} ${perSecond} /s  ${cpu} µs`)
    console.log(`    ${flows} flows; ${settings}`)
  }
}
