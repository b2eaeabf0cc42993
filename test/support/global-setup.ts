/** Builds the package, starts the ZooKeeper that all test files share, and checks at the end that nothing is left behind. */
import type { TestProject } from 'vitest/node'
import { ensureBuilt } from './build.ts'
import { provide } from './install.ts'
import { watchLeftovers } from './leftovers.ts'
import { nativeLeftOut } from './native-package.ts'
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
  end(): Promise<void>
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const isFirst = run.jobboardRun === undefined
  run.jobboardRun ??= begin()
  const { hosts, end } = await run.jobboardRun
  project.provide('zookeeperHosts', hosts)
  return async () => {
    if (!isFirst) return
    delete run.jobboardRun
    await end()
  }
}

async function begin(): Promise<Run> {
  await ensureBuilt()
  const leftovers = watchLeftovers()
  const server = await startSharedServer().catch(async (error: unknown) => {
    await leftovers.removeAll()
    throw error
  })
  return {
    hosts: server?.hosts ?? '',
    end: async () => {
      await server?.stop()
      for (const [what, isLeftOut] of Object.entries({
        'everything that needs ZooKeeper': server === undefined,
        'the native driver': nativeLeftOut,
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
async function startSharedServer(): Promise<ZooKeeperServer | undefined> {
  const way = await provide(ZOOKEEPER)
  if (way === 'program') await archiveClasses()
  return way === 'skip' ? undefined : startZooKeeper()
}
