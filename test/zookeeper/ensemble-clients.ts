/** Clients of an ensemble. */
import { ZooKeeper, type ZooKeeperOptions } from '../../src/zookeeper/index.ts'
import type { Ensemble, EnsembleServer } from '../support/ensemble.ts'

/** A client that knows all servers and is connected to this one. */
export async function connectedTo(
  server: EnsembleServer,
  ensemble: Ensemble,
  options: Partial<ZooKeeperOptions> = {},
): Promise<ZooKeeper> {
  const others = ensemble.servers.filter(({ id }) => id !== server.id)
  for (const { proxy } of others) proxy.mode = 'refuse'
  try {
    const client = new ZooKeeper({ hosts: ensemble.hosts, ...options })
    await client.connect()
    return client
  } finally {
    for (const { proxy } of others) proxy.mode = 'pass'
  }
}

/** Asks again and again, each time when the last answer is there, and keeps account of what became of it. */
export class Load {
  readonly done: string[] = []
  /** By outcome. */
  readonly failed: Record<string, number> = {}
  readonly #stop = new AbortController()
  readonly #running: Promise<unknown>
  #count = 0
  #next: (() => void) | undefined

  /** @param width how many requests are under way at any time */
  constructor(client: ZooKeeper, folder: string, width: number) {
    const worker = async () => {
      while (!this.#stop.signal.aborted) await this.#create(client, `${folder}/n${this.#count++}`)
    }
    this.#running = Promise.all(Array.from({ length: width }, worker))
  }

  /** Resolves when something that was asked from now on is done. */
  async nextDone(): Promise<void> {
    const asked = this.#count
    while (!this.done.some((path) => Number(path.slice(path.lastIndexOf('/') + 2)) >= asked)) {
      await new Promise<void>((resolve) => {
        this.#next = resolve
      })
    }
  }

  /** Resolves when everything is settled. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #create(client: ZooKeeper, path: string): Promise<void> {
    try {
      await client.create(path)
      this.done.push(path)
    } catch (error) {
      const outcome = (error as { outcome?: string }).outcome ?? String(error)
      this.failed[outcome] = (this.failed[outcome] ?? 0) + 1
    }
    this.#next?.()
  }
}
