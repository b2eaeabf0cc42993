/** The memory backend with its answers, its requests and its news under a test's control: races made to happen. */
import { JobBoard } from '../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../src/board/backends/memory/index.ts'
import type { BackendSink, BoardChange } from '../../src/board/contract/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { createDeferred, type Deferred } from '../../src/core/async/abort.ts'
import { overrideRole } from './override-role.ts'

type Method = 'post' | 'claim' | 'settle' | 'list' | 'read' | 'register' | 'unregister'

/** The next call of a method, stopped on its way there or on its way back. */
export interface Stopped {
  /** Resolves when it is there. */
  readonly there: Promise<void>
  /** Lets it go on; with an error, the call rejects with it. */
  release(error?: Error): void
}

interface Stop {
  readonly when: 'before' | 'after'
  readonly there: Deferred<void>
  readonly released: Deferred<void>
}

export class SlowBackend extends MemoryBackend {
  readonly #stops = new Map<Method, Stop[]>()
  #sink: BackendSink | undefined
  #dropsChanges = false
  #refusal: Error | undefined

  constructor(name: string) {
    super({ uri: `memory:${name}`, space: memorySpace(name) })
    overrideRole(this, 'session', (session) => ({
      open: (sink, options) => session.open(this.#listening(sink), options),
    }))
    overrideRole(this, 'jobs', (jobs) => ({
      post: (request) => this.#through('post', () => jobs.post(request)),
      list: () => this.#through('list', () => jobs.list()),
      read: (ids) => this.#through('read', () => jobs.read(ids)),
    }))
    overrideRole(this, 'claims', (claims) => ({
      claim: (choices) =>
        this.#through('claim', async () => {
          const error = this.#refusal
          this.#refusal = undefined
          if (!error) return claims.claim(choices)
          return [{ error }, ...(await claims.claim(choices.slice(1)))]
        }),
      settle: (settlement) => this.#through('settle', () => claims.settle(settlement)),
    }))
    overrideRole(this, 'entities', (entities) => ({
      register: (entity) => this.#through('register', () => entities.register(entity)),
      unregister: (entity) => this.#through('unregister', () => entities.unregister(entity)),
    }))
  }

  stop(method: Method, when: 'before' | 'after'): Stopped {
    const stop: Stop = { when, there: createDeferred(), released: createDeferred() }
    // An error may be there before the call is.
    stop.released.promise.catch(() => undefined)
    this.#stops.set(method, [...(this.#stops.get(method) ?? []), stop])
    return {
      there: stop.there.promise,
      release: (error) => (error ? stop.released.reject(error) : stop.released.resolve()),
    }
  }

  /** From now on no change is told. */
  dropChanges(): void {
    this.#dropsChanges = true
  }

  /** Changes are told again; what was missed is a gap. */
  hearAgain(): void {
    this.#dropsChanges = false
    this.#sink?.gap()
  }

  /** The first of the next claims that are asked for together is answered with this, and not tried. */
  refuseFirst(error: Error): void {
    this.#refusal = error
  }

  /** Returns the sink, which receives no changes while the backend drops them. */
  #listening(sink: BackendSink): BackendSink {
    const unlessDropped = (report: (batch: readonly BoardChange[]) => void) => (batch: readonly BoardChange[]) => {
      if (!this.#dropsChanges) report(batch)
    }
    this.#sink = { ...sink, changes: unlessDropped(sink.changes), followed: unlessDropped(sink.followed) }
    return this.#sink
  }

  async #through<T>(method: Method, call: () => Promise<T>): Promise<T> {
    const stop = this.#stops.get(method)?.shift()
    if (stop?.when === 'before') {
      stop.there.resolve()
      await stop.released.promise
    }
    const answer = await call()
    if (stop?.when === 'after') {
      stop.there.resolve()
      await stop.released.promise
    }
    return answer
  }
}

/** A board on a slow backend, and one beside it that is quick. */
export async function slowBoard(name: string): Promise<{ board: JobBoard; backend: SlowBackend; other: JobBoard }> {
  const backend = new SlowBackend(name)
  const board = new JobBoard(backend, { who: 'slow' })
  const other = new JobBoard(new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) }), { who: 'other' })
  await Promise.all([boardInternals(board).open(), boardInternals(other).open()])
  await Promise.all([board.view(), other.view()])
  return { board, backend, other }
}
