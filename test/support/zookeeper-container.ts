/** A ZooKeeper server in a container: alone, or one of an ensemble whose servers find each other on this machine's network. */
import { type ContainerDefinition, ServerContainer } from './server-container.ts'
import { contentsOf } from './settings-files.ts'
import { configFile, fourLetter, JAVA_FLAGS, type ProgramOptions, type Settings } from './zookeeper-program.ts'

const IMAGE = 'zookeeper:3.9'

export type ZooKeeperContainerOptions = Omit<ProgramOptions, 'dataDir'>

/** What `ZooKeeperProgram.prepare` is for programs: it does not run yet. */
export async function prepareContainer(
  options: ZooKeeperContainerOptions,
): Promise<ServerContainer & { port: number }> {
  const { port, settings, java = [] } = options
  // Java's flags name files too: `-Djava.security.auth.login.config=/…`.
  const flagged = Object.fromEntries(java.map((flag) => [flag, flag.slice(flag.indexOf('=') + 1)]))
  const definition = zooKeeperContainer(options, await contentsOf({ ...settings, ...flagged }))
  const ready = async () => (await fourLetter(port, 'srvr').catch(() => '')).includes('Mode:')
  return Object.assign(new ServerContainer({ definition, ready }), { port })
}

/** @param files contents by path, of what the settings and flags name */
export function zooKeeperContainer(
  { settings, java = [], id = 1 }: ZooKeeperContainerOptions,
  files: Readonly<Record<string, string>>,
): ContainerDefinition {
  const all: Settings = { ...settings, dataDir: '/data' }
  return {
    name: 'ZooKeeper',
    image: IMAGE,
    command: ['zkServer.sh', 'start-foreground'],
    setup: `echo ${id} > /data/myid`,
    // Without the last, each server would open a port for JMX.
    environment: { JVMFLAGS: [...JAVA_FLAGS, ...java].join(' '), JMXDISABLE: 'true' },
    files: { ...files, '/conf/zoo.cfg': configFile(all) },
  }
}
