/**
 * The ledger of one job: what the post, the claim and the settlement of a plain job cost on each board, by stage. One process posts and another works, as
 * fast as they can; on the board in memory one process does both. Each board runs three times: without sampling, with samples of the processor, and with
 * samples of allocations. Sampling slows a run.
 */
import { cpus } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../support/build.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import type { Measured } from './job-child.ts'
import { STAGES, type Stage } from './job-stages.ts'
import { startPart } from './part.ts'
import { processorTime } from './processor-time.ts'
import { benchFolder, sqliteUri } from './sqlite-places.ts'

const CHILD = join(ROOT, 'test/bench/job-child.ts')
const JOBS = times(40_000, 1_000)

interface Place {
  readonly what: string
  /** @param run a name that this place has not used before */
  uri(run: string): string
  /** The server's process; absent where there is none. */
  readonly pid?: number
  readonly roles: readonly string[]
}

interface Run {
  /** One for each role. */
  readonly parts: readonly Measured[]
  /** Microseconds of the server for each job; undefined without a server. */
  readonly server: number | undefined
}

export default async function job(): Promise<void> {
  await using zookeeper = await startBenchServer()
  await using redis = await startRedis()
  await using postgres = await startPostgres()
  await using folder = await benchFolder()
  const apart = { roles: ['post', 'work'] }
  const places: readonly Place[] = [
    { what: 'memory', uri: () => 'memory:', roles: ['both'] },
    { what: 'SQLite', uri: (run) => sqliteUri(folder.path, run), ...apart },
    { what: 'Redis', uri: (run) => `${redis.uri}/0?prefix=${run}`, pid: redis.pid, ...apart },
    { what: 'Postgres', uri: (run) => `${postgres.uri}?board=${run}`, pid: postgres.pid, ...apart },
    { what: 'ZooKeeper', uri: (run) => `zookeeper://${zookeeper.hosts}/${run}`, pid: zookeeper.pid, ...apart },
  ]
  console.log(`Node ${process.version}, ${cpus().length} processors; ${JOBS} jobs, figures for one job`)
  const goals: { readonly what: string; readonly value: number; readonly goal: { readonly atMost: number } }[] = []
  for (const place of places) {
    const plain = await run(place, 'plain')
    const [cpu, heap] = [await run(place, 'cpu'), await run(place, 'heap')]
    printPlace(place, { plain, cpu, heap })
    if (place.what === 'ZooKeeper') {
      const value = plain.parts.reduce((sum, part) => sum + part.cpu, 0) / JOBS
      goals.push({
        what: 'plain job on ZooKeeper, µs of processor time of poster and worker:',
        value,
        goal: { atMost: 120 },
      })
    }
    const garbageShare = place.what === 'memory' ? undefined : toGarbageShare(cpu)
    if (garbageShare !== undefined)
      goals.push({
        what: `garbage collector's share of a worker on ${place.what}:`,
        value: garbageShare,
        goal: { atMost: 0.1 },
      })
  }
  printGoals(goals)
}

async function run({ uri, roles, pid }: Place, kind: string): Promise<Run> {
  const at = uri(`ledger-${kind}`)
  const before = pid === undefined ? undefined : await processorTime(pid)
  const started = await Promise.all(roles.map((role) => startPart(CHILD, [role, at, String(JOBS), kind])))
  const done = await Promise.all(started.map((part) => part.go()))
  const after = pid === undefined ? undefined : await processorTime(pid)
  // The first quarter, which is not measured, costs the server the same.
  const server = before === undefined || after === undefined ? undefined : ((after - before) * 1_000) / (1.25 * JOBS)
  return { parts: done.map(({ said }) => said as Measured), server }
}

/** Returns the garbage collector's share of the time of the worker's main thread. */
function toGarbageShare({ parts }: Run): number | undefined {
  const ledger = parts.at(-1)?.ledger
  if (!ledger) return undefined
  const all = STAGES.reduce((sum, stage) => sum + ledger[stage], 0)
  return ledger.garbage / all
}

function printPlace(
  { what, roles }: Place,
  { plain, cpu, heap }: { readonly plain: Run; readonly cpu: Run; readonly heap: Run },
): void {
  console.log(`\n${what}${plain.server === undefined ? '' : `: server ${plain.server.toFixed(0)} µs`}`)
  for (const [index, role] of roles.entries()) {
    const [all, taken, allocated] = [plain.parts[index], cpu.parts[index]?.ledger, heap.parts[index]?.ledger]
    if (!all || !taken || !allocated) continue
    const sum = (ledger: Readonly<Record<Stage, number>>) => STAGES.reduce((total, stage) => total + ledger[stage], 0)
    const traffic = `${(all.writes / JOBS).toFixed(3)} writes, ${(all.sent / JOBS).toFixed(0)} bytes sent, ${(all.received / JOBS).toFixed(0)} received`
    console.log(
      `  ${role}: ${(all.cpu / JOBS).toFixed(1)} µs; ${traffic}; ${(sum(allocated) / JOBS).toFixed(0)} bytes allocated`,
    )
    for (const stage of STAGES) {
      if (taken[stage] + allocated[stage] === 0) continue
      const [us, bytes] = [(taken[stage] / JOBS).toFixed(1), (allocated[stage] / JOBS).toFixed(0)]
      console.log(`    ${stage.padEnd(8)} ${us.padStart(7)} µs ${bytes.padStart(8)} bytes`)
    }
    console.log('    functions that allocated most')
    for (const { name, bytes } of heap.parts[index]?.allocators ?? [])
      console.log(`      ${(bytes / JOBS).toFixed(0).padStart(5)} bytes ${name}`)
  }
}
