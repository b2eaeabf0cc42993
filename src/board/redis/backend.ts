/**
 * The Redis backend: what `Backend` asks for, as steps of scripts. Where things are: `layout.ts`; what is one step:
 * `scripts/commit.ts`; how it is sent, and what became of it: `committer.ts`; whose it is, and for how long: `session.ts`.
 */
import {
  ClaimLost,
  Duplicate,
  InvalidPosting,
  InvalidState,
  JobboardError,
  NotFound,
  Unclaimable,
  WritesRefused,
} from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { shortened } from '../../core/texts.ts'
import { atMost } from '../../core/time.ts'
import type {
  Backend,
  BackendCapabilities,
  Cancellation,
  CancelRequest,
  Choice,
  Discard,
  Entity,
  GateRequest,
  Granted,
  Posted,
  PostRequest,
  Result,
  Sections,
  SessionHold,
  Settlement,
  Sink,
  Stored,
  TrashedEntry,
  Unreadable,
} from '../backend.ts'
import { countedBytes, type Posting } from '../posting.ts'
import { attempted, resultOf } from '../results.ts'
import { type Answer, Committer, MISSING } from './committer.ts'
import { Layout, orderOf } from './layout.ts'
import type { RedisPlace } from './place.ts'
import { BoardReader } from './reading.ts'
import { encodeCancellation, LARGEST_POST, writePosting } from './records.ts'
import { BoardSections } from './sections.ts'
import { FAREWELL, Session } from './session.ts'
import {
  claimStep,
  discardStep,
  nameOf,
  postStep,
  purgeStep,
  registerStep,
  restoreStep,
  type Step,
  settleStep,
  unregisterStep,
} from './steps.ts'

export interface RedisBackendOptions {
  readonly place: RedisPlace
  readonly log: Logger
  readonly create?: boolean
}

const EVERYTHING: BackendCapabilities = {
  keys: true,
  resources: true,
  delays: true,
  cancel: true,
  restore: true,
  everyChange: true,
}

/** A hand-made change is one step for each posting; so many are sent at once. */
const MENDED_AT_ONCE = 256
/** Of jobs in no place of the claim order, and of other damage. */
const MAX_REPORTED = 1_000

/** Keys, and names in them, can have any length. */
const MAX_FAULT_LENGTH = 1_000

interface Opened {
  readonly session: Session
  readonly committer: Committer
  readonly reader: BoardReader
}

export class RedisBackend implements Backend {
  readonly capabilities = EVERYTHING
  readonly uri: string
  readonly sessionTimeout: number
  readonly sections: Sections
  readonly #options: RedisBackendOptions
  readonly #layout: Layout
  readonly #reported = new Set<string>()
  #failed: (error: Error) => void = () => undefined
  #board: Opened | undefined

  /** @throws InvalidArgument for a prefix that cannot be one */
  constructor(options: RedisBackendOptions) {
    this.uri = options.place.uri
    this.sessionTimeout = options.place.ttl
    this.#options = options
    this.#layout = new Layout(options.place.prefix)
    this.sections = new BoardSections({
      window: options.place.window,
      windowBytes: options.place.windowBytes,
      session: () => this.#opened.session,
      uuids: this.#layout.key('uuids'),
      misplaced: (id) => this.#misplaced(id),
    })
  }

  async open(sink: Sink, options: { signal: AbortSignal }): Promise<void> {
    const { place, log, create = true } = this.#options
    const layout = this.#layout
    const session: Session = new Session({
      ...{ place, layout, sink, log, create },
      attached: () => committer.attached(),
      lost: (id) => committer.lost(id),
      uneven: () => this.#mend(),
      damaged: (fault) => this.#damaged(fault),
    })
    const failed = (error: Error) => sink.error(error)
    this.#failed = failed
    const damaged = (fault: string) => this.#damaged(fault)
    const committer: Committer = new Committer({ layout, ttl: place.ttl, session: () => session, failed, damaged })
    this.#board = { session, committer, reader: new BoardReader({ session, layout, failed }) }
    await session.open(options)
  }

  async close(): Promise<void> {
    if (!this.#board) return
    const { session, committer } = this.#board
    // Where no connection comes back, what was sent last is never answered.
    await atMost(FAREWELL, committer.idle())
    await session.close()
    // What was asked for meanwhile, and what was not answered.
    committer.closed()
    await committer.idle()
  }

  async post(requests: readonly PostRequest[]): Promise<Result<Posted>[]> {
    const sizes: number[] = []
    const steps = requests.map((request, index) =>
      attempted(() => {
        const bytes = writePosting(request.posting, { limit: LARGEST_POST })
        sizes[index] = countedBytes(bytes, 'msgpack')
        return postStep(request, { bytes })
      }),
    )
    const answers = await this.#opened.committer.submitAll(steps)
    const posted = answers.map((answer, index) =>
      attempted(() => postedOf(answerOf(answer), { bytes: sizes[index] ?? 0 })),
    )
    const again = answers.some((answer) => 'value' in answer && answer.value.again)
    return again ? Promise.all(posted.map((result) => this.#whereabouts(result))) : posted
  }

  async claim(choices: readonly Choice[]): Promise<Result<Granted>[]> {
    const { committer } = this.#opened
    const steps = choices.map((choice) => attempted(() => claimStep(choice)))
    const answers = await committer.submitAll(steps)
    // What held a resource was a dead owner's, and is free by now.
    const freed = answers.flatMap((answer, index) => (lacksFreed(answer) ? [index] : []))
    const second = await committer.submitAll(freed.flatMap((index) => steps[index] ?? []))
    for (const [at, index] of freed.entries()) answers[index] = second[at] ?? MISSING
    return choices.map((choice, index) => attempted(() => grantedOf(choice, answerOf(answers[index]))))
  }

  async settle(settlements: readonly Settlement[]): Promise<Result<void>[]> {
    const steps = settlements.map((settlement) =>
      attempted(() => {
        if (this.alive(settlement.session)) return settleStep(settlement)
        throw goneClaim(settlement)
      }),
    )
    const answers = await this.#opened.committer.submitAll(steps)
    return settlements.map((settlement, index) =>
      attempted(() => {
        if (!answerOf(answers[index]).done) throw goneClaim(settlement)
      }),
    )
  }

  async discard(discarded: Discard): Promise<Result<void>> {
    return resultOf(
      this.#do(discardStep(discarded)).then(({ done, told }) => {
        if (!done) throw refusal(discarded, { why: told[0] })
      }),
    )
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    if (request.kind === 'gate') {
      const what = request.paused ? 'pause' : 'resume'
      await this.#do({ words: ['gate', request.paused], what: `${what} of ${this.uri}`, bytes: 10 })
      return
    }
    const { id, job } = request
    const bytes = encodeCancellation(request)
    const step = { words: ['cancel', id, bytes], what: `cancel of ${job}`, bytes: bytes.length, grows: true } as const
    if (!(await this.#do(step)).done) throw new NotFound(`${job} has left the board`)
  }

  async restore(entry: TrashedEntry, posting: Posting): Promise<void> {
    const { done, told } = await this.#do(restoreStep(entry, posting))
    if (done) return
    if (told[0] === 'key')
      throw new Duplicate(`${nameOf(posting)}: its key is taken on the board; restore it when the key is free`)
    throw notInTrash(entry)
  }

  async purge(entry: TrashedEntry): Promise<void> {
    if (!(await this.#do(purgeStep(entry))).done) throw notInTrash(entry)
  }

  async read(ids: readonly string[]): Promise<(Stored | Unreadable | undefined)[]> {
    return this.#opened.reader.read(ids)
  }

  async owner(id: string): Promise<string | undefined> {
    return this.#opened.reader.owner(id)
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return this.#opened.reader.cancellation(id)
  }

  async barrier(): Promise<void> {
    await this.#opened.session.look()
  }

  trashed(): AsyncIterable<TrashedEntry> {
    return this.#opened.reader.trashed()
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    return this.#opened.reader.trashedEntry(id)
  }

  async register(entity: Entity): Promise<void> {
    const { session } = this.#opened
    const step = registerStep(entity, await session.proven())
    let { done, freed } = await this.#do(step)
    if (freed) ({ done } = await this.#do(step))
    if (!done) throw new Duplicate(`a living ${entity.kind} bears the name ${entity.name}; give this one another`)
  }

  async unregister(entity: Entity): Promise<void> {
    if (this.#board?.session.attached) await this.#do(unregisterStep(entity))
  }

  async entities(kind: string): Promise<Entity[]> {
    const { session, reader } = this.#opened
    // The dead are buried first.
    await session.look()
    return (await reader.entities()).filter((entity) => entity.kind === kind)
  }

  now(): number {
    return this.#board?.session.clock.now() ?? Date.now()
  }

  /** The lease is watched in any case. */
  holdSession(): SessionHold {
    return { proven: () => this.#opened.session.proven(), [Symbol.dispose]: () => undefined }
  }

  alive(session: string): boolean {
    return this.#board?.session.alive(session) ?? false
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  get #opened(): Opened {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  /** Reports each job once; of a great many the first. */
  #misplaced(id: string): void {
    const what = `${shortened(id)} has a score in ${this.#layout.key('order')} that no board gives`
    this.#report(id, new InvalidPosting(`${what}; it is not claimed here, remove it`))
  }

  /** Reports each damage once, also where it cannot be repaired and is found again and again. */
  #damaged(fault: string): void {
    this.#report(fault, new JobboardError(`${this.uri}: ${fault.slice(0, MAX_FAULT_LENGTH)}`))
  }

  #report(what: string, error: Error): void {
    if (this.#reported.has(what) || this.#reported.size >= MAX_REPORTED) return
    this.#reported.add(what)
    this.#failed(error)
  }

  #do(step: Step): Promise<Answer> {
    return this.#opened.committer.submit(step)
  }

  /** Of a job that was posted before its answer was lost. Without a connection to ask by, the listing on the next one tells. */
  async #whereabouts(result: Result<Posted>): Promise<Result<Posted>> {
    if ('error' in result || !result.value.created || result.value.id === undefined) return result
    const { id, ...posted } = result.value
    return { value: { ...posted, ...(await this.#opened.reader.whereabouts(id).catch(() => ({ id }))) } }
  }

  /** The view hears of what somebody did by hand. */
  async #mend(): Promise<void> {
    const { reader } = this.#opened
    const ids = await reader.uneven()
    for (let from = 0; from < ids.length; from += MENDED_AT_ONCE) {
      const part = ids.slice(from, from + MENDED_AT_ONCE)
      await Promise.all(part.map((id) => this.#do({ words: ['mend', id], what: `mending of ${id}`, bytes: 50 })))
    }
  }
}

function postedOf({ done, told }: Answer, { bytes }: { readonly bytes: number }): Posted {
  const id = String(told[0])
  return done
    ? { created: true, id, revision: 0, order: orderOf(id), bytes }
    : { created: false, uuid: id, revision: 0 }
}

function grantedOf(choice: Choice, { done, told, session }: Answer): Granted {
  if (!done) throw refusal(choice, { why: told[0], resource: told[1] })
  const [revision, fence] = told
  return { session, revision: Number(revision), fence: BigInt(fence as number | bigint) }
}

function lacksFreed(answer: Result<Answer>): boolean {
  return 'value' in answer && answer.value.freed && answer.value.told[0] === 'resource'
}

function goneClaim({ kind, posting }: Settlement): ClaimLost {
  return new ClaimLost(`${kind} of ${nameOf(posting)}: the claim is gone; stop and write nothing`)
}

function answerOf(result: Result<Answer> = MISSING): Answer {
  if ('value' in result) return result.value
  throw result.error
}

function refusal({ id, posting }: Pick<Choice, 'id' | 'posting'>, asked: { why: unknown; resource?: unknown }): Error {
  const what = nameOf(posting)
  switch (asked.why) {
    case 'gone':
      return new NotFound(`${what} has left the board`)
    case 'paused':
      return new Unclaimable(`${what}: the board is paused`)
    case 'fences':
      return new WritesRefused(
        `${what}: the fence of the board is at its end; nothing was changed, see its error event`,
      )
    case 'resource':
      return new Unclaimable(`${what}: another job holds one of its resources, ${String(asked.resource)}`)
    default:
      return new Unclaimable(`${what} (${id}) was claimed or changed by another`)
  }
}

function notInTrash({ posting }: TrashedEntry): NotFound {
  return new NotFound(`${nameOf(posting)} is not in the trash any more`)
}
