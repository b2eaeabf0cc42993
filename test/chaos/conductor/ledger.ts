/**
 * A ledger that knows nothing of boards: what jobs do to it is fenced by the number that their claims carry, as any store
 * outside may do. It notes what must never be.
 *
 * A job enters with what it owns, and leaves. Whoever comes with a larger fence ends the stay of whoever is still in there
 * with the same resource: its owner is dead, or has lost its claim, and its leave is refused. A job that has left once is
 * done; that it comes again, because its owner died before it could write that down, changes nothing.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { createDeferred } from '../../../src/core/async/abort.ts'

export interface RunRecord {
  readonly n: number
  readonly run: number
  /** As text: JSON has no such numbers. */
  readonly fence: string
  readonly exclusive: readonly string[]
  readonly shared: readonly string[]
}

export type Answer = 'entered' | 'left' | 'done before' | 'fenced'

interface OwnershipInterval extends RunRecord {
  readonly mark: bigint
}

export class Ledger implements AsyncDisposable {
  readonly wrong: string[] = []
  /** How often a job came that was done before, and how often one was refused. */
  readonly counts = { again: 0, fenced: 0 }
  readonly #server: Server
  readonly #inside = new Map<number, OwnershipInterval>()
  /** The largest fence of each resource, of those who had it alone and of those who shared it. */
  readonly #newest = { exclusive: new Map<string, bigint>(), shared: new Map<string, bigint>() }
  readonly #done = new Map<number, RunRecord>()
  /** Of each exclusive resource, the jobs in the order in which they came first. */
  readonly #order = new Map<string, number[]>()
  readonly #came = new Set<number>()
  #wanted = Number.POSITIVE_INFINITY
  readonly #enough = createDeferred()

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<Ledger> {
    const server = createServer()
    const ledger = new Ledger(server)
    server.on('request', async (request, response) => {
      response.end(JSON.stringify(ledger.#answer(request.url ?? '', await json(request))))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return ledger
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get done(): number {
    return this.#done.size
  }

  /** Resolves when so many jobs are done. */
  async reached(jobs: number): Promise<void> {
    this.#wanted = jobs
    if (this.#done.size < jobs) await this.#enough.promise
  }

  /** What is out of posting order, by resource: those who want the same come in the order in which they were posted. */
  get outOfOrder(): string[] {
    return [...this.#order].flatMap(([resource, jobs]) => {
      const at = jobs.findIndex((n, index) => index > 0 && n < (jobs[index - 1] ?? n))
      return at < 0 ? [] : [`${resource}: ${jobs[at - 1]} came before ${jobs[at]}`]
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  #answer(url: string, told: unknown): Answer | 'noted' {
    if (url === '/wrong') {
      this.wrong.push(String(told))
      return 'noted'
    }
    const stay = { ...(told as RunRecord), mark: BigInt((told as RunRecord).fence) }
    return url === '/enter' ? this.#enter(stay) : this.#leave(stay)
  }

  #enter(stay: OwnershipInterval): Answer {
    const { n, run, exclusive, shared, mark } = stay
    const before = this.#done.get(n)
    if (before) {
      // One of an earlier run was on its way when its process was stopped: late, and refused by its fence.
      if (before.run > run) return this.#fenced()
      if (before.run === run) this.wrong.push(`job ${n} came as run ${run}, and was done as run ${before.run}`)
      this.counts.again += 1
      return 'done before'
    }
    if (this.#isOld(stay)) return this.#fenced()
    for (const [other, inside] of this.#inside) if (other === n || conflict(inside, stay)) this.#inside.delete(other)
    this.#inside.set(n, stay)
    if (!this.#came.has(n)) for (const resource of exclusive) this.#orderOf(resource).push(n)
    this.#came.add(n)
    for (const resource of exclusive) this.#newest.exclusive.set(resource, mark)
    for (const resource of shared) this.#raise(resource, mark)
    return 'entered'
  }

  /** A reader is not fenced by readers, whenever they came. */
  #isOld({ exclusive, shared, mark }: OwnershipInterval): boolean {
    const { exclusive: writers, shared: readers } = this.#newest
    const newer = (fences: ReadonlyMap<string, bigint>, resource: string) => (fences.get(resource) ?? -1n) > mark
    return (
      exclusive.some((resource) => newer(writers, resource) || newer(readers, resource)) ||
      shared.some((resource) => newer(writers, resource))
    )
  }

  #raise(resource: string, mark: bigint): void {
    const { shared } = this.#newest
    if ((shared.get(resource) ?? -1n) < mark) shared.set(resource, mark)
  }

  #leave({ n, mark, run }: OwnershipInterval): Answer {
    const inside = this.#inside.get(n)
    if (inside?.mark !== mark) return this.#fenced()
    this.#inside.delete(n)
    this.#done.set(n, { ...inside, run })
    if (this.#done.size >= this.#wanted) this.#enough.resolve()
    return 'left'
  }

  #fenced(): Answer {
    this.counts.fenced += 1
    return 'fenced'
  }

  #orderOf(resource: string): number[] {
    const order = this.#order.get(resource) ?? []
    this.#order.set(resource, order)
    return order
  }
}

function conflict(a: OwnershipInterval, b: OwnershipInterval): boolean {
  const claims = (one: OwnershipInterval, other: OwnershipInterval) =>
    one.exclusive.some((resource) => other.exclusive.includes(resource) || other.shared.includes(resource))
  return claims(a, b) || claims(b, a)
}
