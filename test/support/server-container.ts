/**
 * A server that runs in a container of this machine's engine: started, crashed, brought back, removed. All use the network of
 * this machine, so a server listens on the same ports, and finds the same proxies and siblings, as the program would.
 */
import { setTimeout as sleep } from 'node:timers/promises'

export interface ContainerDefinition {
  /** For messages. */
  readonly name: string
  readonly image: string
  /** The whole command: the image's own entrypoint is not used. */
  readonly command: readonly string[]
  /** Lines of shell, run as root before the command at each start. */
  readonly setup?: string
  readonly environment?: Readonly<Record<string, string>>
  /** Contents by path in the container. */
  readonly files?: Readonly<Record<string, string>>
}

/** What is needed of a container that runs. */
export interface Container {
  isRunning(): Promise<boolean>
  /** What it has printed so far. */
  output(): Promise<string>
  kill(): Promise<void>
  start(): Promise<void>
  pause(): Promise<void>
  resume(): Promise<void>
  /** Ends it, with its volumes. */
  remove(): Promise<void>
}

export type RunContainer = (definition: ContainerDefinition) => Promise<Container>

export interface ServerContainerOptions {
  readonly definition: ContainerDefinition
  /** Whether it serves by now. */
  readonly ready: () => Promise<boolean>
  /** How a container comes to be; by testcontainers unless a test says otherwise. */
  readonly run?: RunContainer
}

const READY_WITHIN_MS = 60_000
const POLL_MS = 25

export class ServerContainer {
  /** Of no process that can be signalled from here. */
  readonly pid = 0
  readonly #options: ServerContainerOptions
  #container: Container | undefined
  /** Between a start and the next kill; a killed container cannot be killed again. */
  #started = false

  constructor(options: ServerContainerOptions) {
    this.#options = options
  }

  /**
   * Starts it and waits until it serves.
   *
   * @throws Error with what it printed when it ends, or does not serve in a minute; it is removed then
   */
  async start(): Promise<void> {
    const { definition, run = await testcontainersRun() } = this.#options
    if (this.#container) await this.#container.start()
    else this.#container = await run(definition)
    this.#started = true
    try {
      await this.#untilReady(this.#container)
    } catch (error) {
      const output = await this.#container.output().catch(() => '')
      await this.stop()
      throw new Error(`${definition.name} did not start: ${output.trim() || 'it printed nothing'}`, { cause: error })
    }
  }

  async kill(): Promise<void> {
    if (this.#started) await this.#container?.kill()
    this.#started = false
  }

  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  async pause(): Promise<void> {
    await this.#container?.pause()
  }

  async resume(): Promise<void> {
    await this.#container?.resume()
  }

  /** Removes it and what it wrote. */
  async stop(): Promise<void> {
    const container = this.#container
    this.#container = undefined
    this.#started = false
    await container?.remove()
  }

  async #untilReady(container: Container): Promise<void> {
    const deadline = performance.now() + READY_WITHIN_MS
    while (performance.now() < deadline) {
      if (await this.#options.ready()) return
      if (!(await container.isRunning())) throw new Error('the container ended')
      await sleep(POLL_MS)
    }
    throw new Error(`no answer within ${READY_WITHIN_MS} ms`)
  }
}

/** Returns the command in which `setup` comes first, with `exec`, so that signals reach the server itself. */
export function shellCommand({ setup = '', command }: ContainerDefinition): readonly string[] {
  return setup === '' ? command : ['sh', '-c', `set -e\n${setup}\nexec "$@"`, 'sh', ...command]
}

/** Loaded only where it is used: it takes a second. */
async function testcontainersRun(): Promise<RunContainer> {
  const { runContainer } = await import('./testcontainers.ts')
  return runContainer
}
