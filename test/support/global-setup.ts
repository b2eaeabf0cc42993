/** One ZooKeeper for all test files of a run; and what is shipped, built from the sources as they are. */
import type { TestProject } from 'vitest/node'
import { ensureBuilt } from './build.ts'
import { provide } from './install.ts'
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
const run = globalThis as typeof globalThis & { jobboardZooKeeper?: Promise<ZooKeeperServer> }

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await ensureBuilt()
  if (run.jobboardZooKeeper !== undefined) {
    project.provide('zookeeperHosts', (await run.jobboardZooKeeper).hosts)
    return async () => undefined
  }
  const way = await provide(ZOOKEEPER)
  if (way === 'skip') {
    project.provide('zookeeperHosts', '')
    return async () => {
      process.stderr.write('LEFT OUT: everything that needs ZooKeeper (JOBBOARD_SKIP)\n')
    }
  }
  if (way === 'program') await archiveClasses()
  run.jobboardZooKeeper = startZooKeeper()
  const server = await run.jobboardZooKeeper
  project.provide('zookeeperHosts', server.hosts)
  return async () => {
    delete run.jobboardZooKeeper
    await server.stop()
    if (nativeLeftOut) process.stderr.write('LEFT OUT: the native driver (JOBBOARD_SKIP)\n')
    if (taskflowLeftOut) process.stderr.write('LEFT OUT: TaskFlow side by side (JOBBOARD_SKIP)\n')
  }
}
