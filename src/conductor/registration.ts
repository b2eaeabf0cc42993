/**
 * A conductor as the board shows it: an entity that says who it is and how it is doing.
 *
 * What changes is told at most every two seconds, and only if it is still otherwise then. So a job that is done in a moment
 * costs no transaction, and a busy conductor one in two seconds.
 */
import { hostname } from 'node:os'
import type { JobBoard, RegisteredEntity, Size } from '../board/index.ts'
import { createDeferred } from '../core/async/abort.ts'
import { Duplicate } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { packageVersion } from '../core/package-version.ts'
import { monotonic, sleep, withinTime } from '../core/time.ts'
import type { KnownFlows } from './claiming/known-flows.ts'
import { isEndedLocalProcess } from './predecessor.ts'

/** Milliseconds. */
const UPDATE_PERIOD_MS = 2_000
/** Between two looks whether a name is free, in milliseconds. */
const NAME_RETRY_MS = 250
/** How long a server may take to answer at the end, in milliseconds. */
const UNREGISTER_TIMEOUT_MS = 5_000
/** Of so many running jobs the uuids are shown. */
const MAX_JOBS_SHOWN = 100

/** How it is doing. */
export interface ConductorStatus {
  readonly state: string
  /** The uuids of the jobs it runs. */
  readonly jobs: readonly string[]
}

export interface RegistrationOptions {
  readonly board: JobBoard
  readonly name: string
  readonly flows: Pick<KnownFlows, 'names' | 'versions'>
  readonly log: Logger
  readonly concurrency: number
  readonly sizes?: readonly Size[] | undefined
  readonly status: () => ConductorStatus
  readonly onError: (error: unknown) => void
}

export class Registration {
  readonly #options: RegistrationOptions
  readonly #startedAt = new Date()
  #entity: RegisteredEntity | undefined
  #timer: NodeJS.Timeout | undefined
  #publishedStatus = ''
  /** What the last try failed with: said once, though it is tried again and again. */
  #fault = ''
  #unsubscribe: (() => void) | undefined

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  /**
   * Where the name is that of a process of this machine that has ended, it waits until the servers have noticed.
   *
   * @throws Duplicate when a living conductor bears the name; the signal's reason
   */
  async register(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { board } = this.#options
    this.#entity = await this.#registerEntity(options.signal)
    this.#unsubscribe = board.on('state', ({ state }) => {
      if (state === 'connected') this.#republish()
    })
    this.statusChanged()
  }

  async #registerEntity(signal: AbortSignal | undefined): Promise<RegisteredEntity> {
    const { board, name, log } = this.#options
    // Servers end a session some time after its timeout.
    const timeoutMs = monotonic() + 2 * (board.sessionTimeout ?? 0)
    for (let tries = 1; ; tries += 1) {
      const metadata = this.#metadata()
      this.#publishedStatus = statusText(metadata)
      try {
        return await board.registerEntity({ kind: 'conductor', name, metadata })
      } catch (error) {
        if (!(error instanceof Duplicate) || monotonic() >= timeoutMs || !(await this.#isOwnedByEndedProcess()))
          throw error
        if (tries === 1) log.warn({ conductor: name }, 'its predecessor died: waiting until the end of its session')
      }
      await sleep(NAME_RETRY_MS, signal ? { signal } : {})
    }
  }

  /** Whether the name is that of one that has ended; it may have gone just now. */
  async #isOwnedByEndedProcess(): Promise<boolean> {
    const { board, name } = this.#options
    const there = (await board.entities('conductor')).find((entity) => entity.name === name)
    return there === undefined || isEndedLocalProcess(there.metadata)
  }

  /** Something of it may be otherwise now. */
  statusChanged(): void {
    if (!this.#entity) return
    this.#timer ??= setTimeout(() => this.#publish(), UPDATE_PERIOD_MS).unref()
  }

  /**
   * Without a connection it is not waited for one: the next that this board has, or the end of the session, takes it away.
   * Nor for a connection that breaks meanwhile, or leads to a server that answers nothing.
   */
  async unregister(): Promise<void> {
    clearTimeout(this.#timer)
    this.#unsubscribe?.()
    const entity = this.#entity
    this.#entity = undefined
    const hidden = this.#removeEntity(entity)
    const { board } = this.#options
    const apart = createDeferred()
    const off = board.on('state', () => board.connected || apart.resolve())
    if (board.connected) await withinTime(UNREGISTER_TIMEOUT_MS, Promise.race([hidden, apart.promise]))
    off()
  }

  /** Never rejects. */
  async #removeEntity(entity: RegisteredEntity | undefined): Promise<void> {
    try {
      await entity?.[Symbol.asyncDispose]()
    } catch (error) {
      if (this.#options.board.connected) this.#options.onError(error)
    }
  }

  /** What was told is of a session that may be over, or it did not get through. */
  #republish(): void {
    this.#publishedStatus = ''
    this.statusChanged()
  }

  #publish(): void {
    this.#timer = undefined
    const metadata = this.#metadata()
    const status = statusText(metadata)
    if (status === this.#publishedStatus || !this.#entity || !this.#options.board.connected) return
    this.#publishedStatus = status
    this.#entity.update(metadata).then(
      () => {
        this.#fault = ''
      },
      (error: unknown) => {
        // Another may have taken the name while this one's session was over, and may go again.
        this.#republish()
        if (this.#entity && this.#options.board.connected) this.#reportError(error)
      },
    )
  }

  #reportError(error: unknown): void {
    const fault = String(error)
    if (fault !== this.#fault) this.#options.onError(error)
    this.#fault = fault
  }

  #metadata(): Record<string, unknown> {
    const { flows, concurrency, sizes, status } = this.#options
    const { state, jobs } = status()
    return {
      host: hostname(),
      pid: process.pid,
      version: packageVersion(),
      flows: flows.names,
      versions: flows.versions,
      ...(sizes ? { sizes } : {}),
      concurrency,
      startedAt: this.#startedAt,
      state,
      running: jobs.length,
      jobs: jobs.slice(0, MAX_JOBS_SHOWN),
    }
  }
}

function statusText({ state, jobs, running }: Record<string, unknown>): string {
  return JSON.stringify([state, running, jobs])
}
