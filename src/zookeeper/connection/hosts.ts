/**
 * Which server to try next. Names are resolved at every attempt, because servers move: all addresses of a name are tried
 * before the next name. The order is this client's own, so that a crowd of clients spreads over the servers.
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, NotConnected } from '../../core/errors.ts'
import { type Endpoint, formatEndpoint } from '../protocol/connect-string.ts'

/** One address of one of the servers that were named. */
export interface Server extends Endpoint {
  readonly address: string
}

/** @throws Error when the name is not known */
export type Resolve = (host: string) => Promise<readonly string[]>

const resolveByDns: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address)

export interface HostsOptions {
  /** From 0 up to 1. */
  readonly random?: () => number
  readonly resolve?: Resolve
}

export class Hosts {
  readonly #random: () => number
  readonly #resolve: Resolve
  #endpoints: readonly Endpoint[]
  #index = 0
  /** Addresses of the endpoint at hand that were given out already. */
  readonly #usedAddresses = new Set<string>()
  readonly #lookups = new Map<string, Promise<readonly string[]>>()
  #preferred: Server | undefined

  /** @throws InvalidArgument where there is none */
  constructor(endpoints: readonly Endpoint[], options: HostsOptions = {}) {
    this.#random = options.random ?? Math.random
    this.#resolve = options.resolve ?? resolveByDns
    this.#endpoints = this.#shuffled(endpoints)
  }

  /** How many were named. */
  get size(): number {
    return this.#endpoints.length
  }

  /** From now on these. */
  update(endpoints: readonly Endpoint[]): void {
    this.#endpoints = this.#shuffled(endpoints)
    this.#index = 0
    this.#usedAddresses.clear()
    this.#preferred = undefined
  }

  includes({ host, port }: Endpoint): boolean {
    return this.#endpoints.some((each) => each.host === host && each.port === port)
  }

  /** The next one is to be this. */
  prefer(server: Server): void {
    this.#preferred = server
  }

  /**
   * @param options.signal gives it up; the next call goes on behind the name that took too long
   * @throws NotConnected naming the host that cannot be resolved; the next call goes on behind it
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

  /** Every address of every server whose name can be resolved. */
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
      const why = error instanceof Error ? error.message : String(error)
      throw new NotConnected(`${formatEndpoint(endpoint)}: ${why}`, { cause: error })
    }
  }

  /** A resolver that is slow is not asked again while it is asked already: only so many can wait for it at a time. */
  #resolveOnce(host: string): Promise<readonly string[]> {
    const lookup = this.#lookups.get(host) ?? this.#resolve(host).finally(() => this.#lookups.delete(host))
    this.#lookups.set(host, lookup)
    return lookup
  }

  #current(): Endpoint {
    const endpoint = this.#endpoints[this.#index]
    if (!endpoint) throw new InvalidArgument('there is no ZooKeeper server to connect to')
    return endpoint
  }

  #moveOn(from: Endpoint): void {
    if (this.#endpoints[this.#index] !== from) return
    this.#index = (this.#index + 1) % this.#endpoints.length
    this.#usedAddresses.clear()
  }

  #shuffled(endpoints: readonly Endpoint[]): Endpoint[] {
    if (endpoints.length === 0) throw new InvalidArgument('there is no ZooKeeper server to connect to')
    const keyed = endpoints.map((endpoint) => ({ endpoint, key: this.#random() }))
    return keyed.sort((a, b) => a.key - b.key).map(({ endpoint }) => endpoint)
  }
}
