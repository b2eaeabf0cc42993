/**
 * Chooses the next server to try. Names are resolved at every attempt, because servers move; all addresses of a name
 * are tried before the next name. Each client has its own random order, so that clients spread over the servers.
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, messageOf, NotConnected } from '../../core/errors.ts'
import { type Endpoint, formatEndpoint } from '../protocol/connect-string.ts'

/** Address of one of the configured servers. */
export interface Server extends Endpoint {
  readonly address: string
}

/**
 * Resolves a host's name to addresses.
 *
 * @throws Error when the name is unknown
 */
export type Resolve = (host: string) => Promise<readonly string[]>

const resolveByDns: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address)

export interface HostsOptions {
  /** Returns a random number, at least 0 and less than 1. */
  readonly random?: () => number
  readonly resolve?: Resolve
}

export class Hosts {
  readonly #random: () => number
  readonly #resolve: Resolve
  #endpoints: readonly Endpoint[]
  #index = 0
  /** Addresses of the current endpoint that were returned already. */
  readonly #usedAddresses = new Set<string>()
  readonly #lookups = new Map<string, Promise<readonly string[]>>()
  #preferred: Server | undefined

  /** @throws InvalidArgument for an empty list */
  constructor(endpoints: readonly Endpoint[], options: HostsOptions = {}) {
    this.#random = options.random ?? Math.random
    this.#resolve = options.resolve ?? resolveByDns
    this.#endpoints = this.#shuffled(endpoints)
  }

  /** Number of configured servers. */
  get size(): number {
    return this.#endpoints.length
  }

  /** Replaces the list of servers. */
  update(endpoints: readonly Endpoint[]): void {
    this.#endpoints = this.#shuffled(endpoints)
    this.#index = 0
    this.#usedAddresses.clear()
    this.#preferred = undefined
  }

  includes({ host, port }: Endpoint): boolean {
    return this.#endpoints.some((each) => each.host === host && each.port === port)
  }

  /** Makes this server the next one. */
  prefer(server: Server): void {
    this.#preferred = server
  }

  /**
   * Returns the next server to try.
   *
   * @param options.signal cancels the call; the next call continues after the name that took too long
   * @throws NotConnected naming the host that cannot be resolved; the next call continues after it
   */
  async next(options: { readonly signal?: AbortSignal } = {}): Promise<Server> {
    for (;;) {
      const preferred = this.#preferred
      this.#preferred = undefined
      if (preferred) return preferred
      const endpoint = this.#current()
      const addresses = await this.#addressesToTry(endpoint, options.signal)
      // The list may have been replaced while the name was resolved.
      if (this.includes(endpoint)) return { ...endpoint, address: this.#pick(endpoint, addresses) }
    }
  }

  /** Returns every address of every server whose name can be resolved. */
  async all(): Promise<Server[]> {
    const found = await Promise.allSettled(
      this.#endpoints.map(async (endpoint) => {
        const addresses = await this.#resolveAddresses(endpoint)
        return addresses.map((address) => ({ ...endpoint, address }))
      }),
    )
    return found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  }

  async #addressesToTry(endpoint: Endpoint, signal: AbortSignal | undefined): Promise<readonly string[]> {
    try {
      return await rejectOnAbort(this.#resolveAddresses(endpoint), signal)
    } catch (error) {
      this.#moveOn(endpoint)
      throw error
    }
  }

  #pick(endpoint: Endpoint, addresses: readonly string[]): string {
    const fresh = addresses.filter((address) => !this.#usedAddresses.has(address))
    const address = fresh[Math.floor(this.#random() * fresh.length)] ?? addresses[0] ?? endpoint.host
    this.#usedAddresses.add(address)
    if (fresh.length <= 1) this.#moveOn(endpoint)
    return address
  }

  async #resolveAddresses(endpoint: Endpoint): Promise<readonly string[]> {
    if (isIP(endpoint.host) !== 0) return [endpoint.host]
    try {
      return await this.#resolveOnce(endpoint.host)
    } catch (error) {
      const why = messageOf(error)
      throw new NotConnected(`${formatEndpoint(endpoint)}: ${why}`, { cause: error })
    }
  }

  /** Resolves a name, with at most one lookup per name at a time: the system limits concurrent lookups. */
  #resolveOnce(host: string): Promise<readonly string[]> {
    const lookup = this.#lookups.get(host) ?? this.#resolve(host).finally(() => this.#lookups.delete(host))
    this.#lookups.set(host, lookup)
    return lookup
  }

  #current(): Endpoint {
    const endpoint = this.#endpoints[this.#index]
    if (!endpoint) throw new InvalidArgument('hosts must name at least one ZooKeeper server')
    return endpoint
  }

  #moveOn(from: Endpoint): void {
    if (this.#endpoints[this.#index] !== from) return
    this.#index = (this.#index + 1) % this.#endpoints.length
    this.#usedAddresses.clear()
  }

  #shuffled(endpoints: readonly Endpoint[]): Endpoint[] {
    if (endpoints.length === 0) throw new InvalidArgument('hosts must name at least one ZooKeeper server')
    const keyed = endpoints.map((endpoint) => ({ endpoint, key: this.#random() }))
    return keyed.sort((a, b) => a.key - b.key).map(({ endpoint }) => endpoint)
  }
}
