/** Builds the package, starts the ZooKeeper and the Postgres that all test files share, and checks at the end that nothing is left behind. */
import type { ProvidedContext } from 'vitest'
import type { TestProject } from 'vitest/node'
import { ensureBuilt } from './build.ts'
import { provide } from './install.ts'
import { watchLeftovers } from './leftovers.ts'
import { nativeLeftOut } from './native-package.ts'
import type { PostgresServer } from './postgres.ts'
import { POSTGRES } from './postgres-programs.ts'
import { startPooledPostgres } from './session-pooler.ts'
import { taskflowLeftOut } from './taskflow.ts'
import { startZooKeeper, ZOOKEEPER, type ZooKeeperServer } from './zookeeper.ts'
import { archiveClasses } from './zookeeper-program.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** `127.0.0.1:PORT`; empty where JOBBOARD_SKIP says to do without. */
    zookeeperHosts: string
  }
}

/** The root and each project of the configuration run this file, each with modules of its own. */
const run = globalThis as typeof globalThis & { jobboardRun?: Promise<Run> }

interface Run {
  /** `127.0.0.1:PORT`; empty where JOBBOARD_SKIP says to do without. */
  readonly hosts: string
  readonly postgres: ProvidedContext['postgres']
  end(): Promise<void>
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const isFirst = run.jobboardRun === undefined
  run.jobboardRun ??= begin()
  const { hosts, postgres, end } = await run.jobboardRun
  project.provide('zookeeperHosts', hosts)
  project.provide('postgres', postgres)
  return async () => {
    if (!isFirst) return
    delete run.jobboardRun
    await end()
  }
}

async function begin(): Promise<Run> {
  const leftovers = watchLeftovers()
  const [build, zookeeper, database] = await Promise.allSettled([
    ensureBuilt(),
    startSharedZooKeeper(),
    startSharedPostgres(),
  ])
  const server = startedOf(zookeeper)
  const postgres = startedOf(database)
  const stop = () => Promise.all([server?.stop(), postgres?.stop()])
  for (const starting of [build, zookeeper, database]) {
    if (starting.status === 'fulfilled') continue
    await stop()
    await leftovers.removeAll()
    throw starting.reason
  }
  return {
    hosts: server?.hosts ?? '',
    postgres: postgres && { uri: postgres.uri, port: postgres.port },
    end: async () => {
      await stop()
      for (const [what, isLeftOut] of Object.entries({
        'everything that needs ZooKeeper': server === undefined,
        'the C client of ZooKeeper': nativeLeftOut,
        'TaskFlow side by side': taskflowLeftOut,
      }))
        if (isLeftOut) process.stderr.write(`LEFT OUT: ${what} (JOBBOARD_SKIP)\n`)
      const left = await leftovers.removeAll()
      if (left.length === 0) return
      process.stderr.write(`FAILED: the tests have left these behind:\n${left.join('\n')}\n`)
      process.exitCode = 1
    },
  }
}

/** Returns undefined where JOBBOARD_SKIP says to do without. */
async function startSharedZooKeeper(): Promise<ZooKeeperServer | undefined> {
  const way = await provide(ZOOKEEPER)
  if (way === 'program') await archiveClasses()
  return way === 'skip' ? undefined : startZooKeeper()
}

/** Returns undefined where JOBBOARD_SKIP says to do without. What a power cut does is not what tests ask who share a server. */
async function startSharedPostgres(): Promise<PostgresServer | undefined> {
  if ((await provide(POSTGRES)) === 'skip') return undefined
  return startPooledPostgres({ config: { fsync: 'off', max_connections: '400' } })
}

/** Returns the server, unless it could not be started. */
function startedOf<T>(starting: PromiseSettledResult<T>): T | undefined {
  return starting.status === 'fulfilled' ? starting.value : undefined
}
