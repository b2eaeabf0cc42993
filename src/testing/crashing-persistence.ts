/**
 * Logbooks through which an owner dies at a certain task: for later readers, its process ended there. The effects of
 * the task remain: only their record is missing, as after a real death.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { ClaimLost } from '../core/errors.ts'
import type {
  AcquireRequest,
  BookQuery,
  FlowLog,
  Persistence,
  ResultPlace,
  SealableResults,
  Transition,
} from '../persistence/index.ts'

export interface OwnerDeath {
  readonly task: string
  /** `during`: the task has begun. `after`: it is done, and that is not recorded. */
  readonly when: 'during' | 'after'
  /** Ends the owner. */
  readonly die: () => Promise<void>
}

export class CrashingPersistence implements Persistence {
  readonly #inner: Persistence
  readonly #death: OwnerDeath
  #dying: Promise<void> | undefined
  #job: string | undefined

  constructor(inner: Persistence, death: OwnerDeath) {
    this.#inner = inner
    this.#death = death
  }

  /** The uuid of the job at which the owner died. */
  get job(): string | undefined {
    return this.#job
  }

  get uri(): string {
    return this.#inner.uri
  }

  open(): Promise<void> {
    return this.#inner.open()
  }

  get encrypts(): boolean {
    return this.#inner.encrypts === true
  }

  sealResults(values: Readonly<Record<string, unknown>>, place: ResultPlace): SealableResults {
    return this.#inner.sealResults?.(values, place) ?? { values }
  }

  /** Does nothing: the logbooks belong to the workbench. */
  async close(): Promise<void> {}

  async [Symbol.asyncDispose](): Promise<void> {}

  createBook(book: Parameters<Persistence['createBook']>[0]): Promise<boolean> {
    return this.#inner.createBook(book)
  }

  updateBook(uuid: string, change: Parameters<Persistence['updateBook']>[1]): Promise<void> {
    return this.#inner.updateBook(uuid, change)
  }

  createFlow(request: Parameters<Persistence['createFlow']>[0]): Promise<boolean> {
    return this.#inner.createFlow(request)
  }

  getBook(uuid: string): ReturnType<Persistence['getBook']> {
    return this.#inner.getBook(uuid)
  }

  listBooks(query?: BookQuery): ReturnType<Persistence['listBooks']> {
    return this.#inner.listBooks(query)
  }

  destroyBook(uuid: string, options?: { readonly unchangedSince?: Date }): Promise<boolean> {
    return this.#inner.destroyBook(uuid, options)
  }

  async acquire(request: AcquireRequest): Promise<FlowLog> {
    await this.#assertAlive()
    const log = await this.#inner.acquire(request)
    return {
      flow: log.flow,
      write: (transition) => this.#write(log, transition),
      close: () => log.close(),
      [Symbol.asyncDispose]: () => log.close(),
    }
  }

  async #write(log: FlowLog, transition: Transition): Promise<void> {
    await this.#assertAlive()
    const { task, when } = this.#death
    const state = when === 'during' ? 'RUNNING' : 'SUCCESS'
    const isHere = transition.atoms?.some((atom) => atom.name === task && atom.state === state) === true
    if (isHere && when === 'after') this.#dying = this.#crash(log)
    await this.#assertAlive()
    await log.write(transition)
    // The task begins when this write is answered: by the next turn of the event loop its code was called.
    if (isHere) this.#dying = turn().then(() => this.#crash(log))
  }

  #crash(log: FlowLog): Promise<void> {
    this.#job = log.flow.uuid
    return this.#death.die()
  }

  /** Throws once the owner is dead, and not earlier: an owner that is refused while it has the claim would settle the job. */
  async #assertAlive(): Promise<void> {
    if (!this.#dying) return
    await this.#dying
    throw new ClaimLost(`the owner has died at task ${this.#death.task}: stop and write nothing`)
  }
}
