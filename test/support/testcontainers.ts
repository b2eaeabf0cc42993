/** Containers by testcontainers, which also removes them when this process ends without doing so. */
import { text } from 'node:stream/consumers'
import { GenericContainer, getContainerRuntimeClient } from 'testcontainers'
import { type Container, type ContainerDefinition, shellCommand } from './server-container.ts'

/** What a server needs beyond the 64 MB that are usual: Postgres shares memory between its processes. */
const SHARED_MEMORY_BYTES = 256 * 1_024 * 1_024
/** A server may run as a user of its image that is not root, and some rewrite their configuration. */
const MODE = 0o666

export async function runContainer(definition: ContainerDefinition): Promise<Container> {
  const [program = '', ...args] = shellCommand(definition)
  const files = Object.entries(definition.files ?? {})
  const started = await new GenericContainer(definition.image)
    .withNetworkMode('host')
    .withUser('root')
    .withSharedMemorySize(SHARED_MEMORY_BYTES)
    .withEnvironment({ ...definition.environment })
    .withEntrypoint([program])
    .withCommand(args)
    .withCopyContentToContainer(files.map(([target, content]) => ({ target, content, mode: MODE })))
    .start()
  const runtime = await getContainerRuntimeClient()
  const engine = runtime.container.getById(started.getId())
  return {
    isRunning: async () => (await engine.inspect()).State.Running,
    output: async () => text(await runtime.container.logs(engine, { follow: false })),
    kill: async () => {
      await engine.kill()
      // Killed is not yet ended, and what has not ended cannot be started.
      await engine.wait()
    },
    start: async () => {
      await engine.start()
    },
    pause: async () => {
      await engine.pause()
    },
    resume: async () => {
      await engine.unpause()
    },
    remove: async () => {
      // Not by `started.stop`, which fails on what is paused.
      await engine.remove({ force: true, v: true })
    },
  }
}
