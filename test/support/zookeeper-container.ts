/** The same server in a container, where an engine answers. */
import { GenericContainer, getContainerRuntimeClient } from 'testcontainers'
import type { ZooKeeperServer } from './zookeeper.ts'
import { configFile, fourLetter, type Settings, untilReady } from './zookeeper-program.ts'

const IMAGE = 'zookeeper:3.9'

export async function startContainer(port: number, settings: Settings): Promise<ZooKeeperServer> {
  const content = configFile({ ...settings, dataDir: '/data', clientPort: 2181 })
  const container = await new GenericContainer(IMAGE)
    .withExposedPorts({ container: 2181, host: port })
    .withCopyContentToContainer([{ content, target: '/conf/zoo.cfg' }])
    .start()
  const runtime = await getContainerRuntimeClient()
  const engine = runtime.container.getById(container.getId())
  let running = true

  const ready = () => untilReady(port, { running: () => true })
  const kill = async () => {
    if (running) await engine.kill()
    running = false
  }
  const stop = async () => {
    await container.stop({ remove: true, timeout: 0 })
  }
  await ready()
  return {
    hosts: `127.0.0.1:${port}`,
    port,
    pid: 0,
    stop,
    kill,
    pause: async () => engine.pause(),
    resume: async () => engine.unpause(),
    restart: async () => {
      await kill()
      await engine.start()
      running = true
      await ready()
    },
    fourLetter: (command) => fourLetter(port, command),
    [Symbol.asyncDispose]: stop,
  }
}
