/**
 * Runs isolated tasks in a pool of child processes, which import the same flows from a module. The engine asks for one `execute` or
 * `revert` at a time; a crash of a child is the failure of one task.
 */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { decode, encode } from '../../core/codec.ts'
import { IncompatibleVersion, InvalidArgument, MessageTooLarge, OutOfMemory } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { formatBytes } from '../../core/memory-size.ts'
import { defined } from '../../core/options.ts'
import type { AtomIsolator, IsolatedAtom } from '../../engine/index.ts'
import { type AnyFlow, type AtomNode, compile, flowDigest, type Isolation } from '../../flow/index.ts'
import { type Child, ChildPool, type ChildStatus, type PoolEvent, type PoolSettings } from '../../pool/index.ts'
import type { AtomQuestion, AtomRequest, AtomWorkerFacts, AtomWorkerSettings } from './atom-request.ts'
import { type AtomNote, parseFacts, parseNote, parseQuestion, parseResult } from './from-worker.ts'

/** The size of a message above which a warning is logged: it is copied several times. */
const LARGE_MESSAGE_BYTES = 1_024 ** 2

/** The limits of a task that does not say that it is isolated: the limits of the pool. */
const DEFAULT_ISOLATION: Isolation = {
  memory: undefined,
  isFresh: false,
  graceMs: undefined,
  onOutOfMemory: 'retry',
}

export interface IsolatedAtomsOptions {
  /** The flows that are run with this pool. */
  readonly flows: readonly AnyFlow[]
  /** The modules that export these flows: URLs, absolute paths, or paths relative to the working directory. */
  readonly modules: readonly (string | URL)[]
  /** The tasks that are isolated: the tasks that declare it, or all. */
  readonly isolate: 'declared' | 'all'
  readonly output: 'log' | 'stderr'
  readonly settings: PoolSettings
  /** The time in milliseconds without a beat of this process after which a child kills itself; 0 for never. */
  readonly silenceMs: number
  /** Returns for how many milliseconds, at least, this process still has the right to the work of its children. */
  readonly workLeftMs: () => number
  readonly log: Logger
  readonly onEvent: (event: PoolEvent) => void
  /** Called when there is room again, after {@link IsolatedAtoms.hasRoom} was false. */
  readonly onRoom: () => void
  /** Called once when a new child has other code than the first one: the module was changed while this process runs. */
  readonly onCodeChanged: (error: Error) => void
}

export class IsolatedAtoms implements AtomIsolator, AsyncDisposable {
  readonly #options: IsolatedAtomsOptions
  readonly #pool: ChildPool
  readonly #digests: ReadonlyMap<string, string>
  /** The flows with tasks that run in child processes. */
  readonly #isolated: ReadonlySet<AnyFlow>
  /** The contexts of the tasks under way, which have the loggers for the output of their children. */
  readonly #contexts = new Map<Child, IsolatedAtom['context']>()
  #wasReady = false
  #wasFull = false
  #isChangeReported = false

  constructor(options: IsolatedAtomsOptions) {
    const { flows, modules, isolate, settings, silenceMs, workLeftMs, log } = options
    const checked = isolate === 'all' ? flows : isolatedFlows(flows)
    this.#options = options
    this.#isolated = new Set(flows.filter((flow) => compile(flow).atoms.some((node) => this.isolationOf(node))))
    this.#digests = new Map(checked.map((flow) => [`${flow.name} ${flow.version}`, flowDigest(flow)]))
    const { maxMessage } = settings
    const sent: AtomWorkerSettings = { modules: modules.map(toModuleUrl), logLevel: log.level, maxMessage }
    this.#pool = new ChildPool({
      ...settings,
      worker: workerUrl(),
      settings: sent,
      ...{ silenceMs, workLeftMs },
      assertFacts: (facts) => this.#assertFacts(parseFacts(facts)),
      onEvent: (event) => this.#onEvent(event),
      onLine: (child, line) => this.#onLine(child, line),
      onDroppedLines: (child, lines) =>
        this.#logOf(child).warn({ child: child.number, pid: child.pid }, `${lines} lines of output were dropped`),
    })
  }

  /** Starts the pool; resolves when a child is ready. @throws ChildUnavailable when the first child cannot be started */
  start(): Promise<void> {
    return this.#pool.start()
  }

  /** Whether children can be started, and fewer tasks wait for one than there may be children. */
  get hasRoom(): boolean {
    const hasRoom = this.#pool.refusal === undefined && this.#pool.waiting < this.#options.settings.max
    if (!hasRoom) this.#wasFull = true
    return hasRoom
  }

  /** Whether there is room, or some flow needs no children. */
  get hasRoomForAny(): boolean {
    return this.#isolated.size < this.#options.flows.length || this.hasRoom
  }

  /** The reason why no child can be started; undefined while one can. */
  get refusal(): Error | undefined {
    return this.#pool.refusal
  }

  get children(): readonly ChildStatus[] {
    return this.#pool.children
  }

  /** Returns the limits for a task; undefined for an atom that runs in this process. */
  isolationOf({ atom, isolation }: AtomNode): Isolation | undefined {
    if (isolation || this.#options.isolate === 'declared') return isolation
    return atom.kind === 'task' && atom.isolate !== false ? DEFAULT_ISOLATION : undefined
  }

  /** Returns whether a flow has tasks that run in child processes. */
  isIsolated(flow: AnyFlow): boolean {
    return this.#isolated.has(flow)
  }

  /**
   * Returns an isolator for the jobs of one board: a child without a beat ends before the claims of this board could.
   *
   * @param board.sessionLeft returns for how many milliseconds the claims of the board are certainly held
   */
  forBoard({ sessionLeft }: { readonly sessionLeft: () => number }): AtomIsolator {
    return {
      isolationOf: (node) => this.isolationOf(node),
      run: (atom) => this.run(atom, { workLeftMs: sessionLeft }),
    }
  }

  /** Runs one `execute` or `revert` in a child, and returns its result. */
  async run(atom: IsolatedAtom, { workLeftMs }: { readonly workLeftMs?: () => number } = {}): Promise<unknown> {
    const { context, isolation, kill, onAssigned } = atom
    const work = this.#toRequest(atom)
    let assigned: Child | undefined
    // The child may have the next task by now, with a context of its own.
    const forget = () => {
      if (assigned && this.#contexts.get(assigned) === context) this.#contexts.delete(assigned)
    }
    try {
      const result = await this.#pool.run({
        ...{ work, workLeftMs, stop: context.signal, kill, isFresh: isolation.isFresh, memory: isolation.memory },
        graceMs: isolation.graceMs ?? this.#options.settings.graceMs,
        onAssigned: (child) => {
          forget()
          assigned = child
          this.#contexts.set(child, context)
          onAssigned()
          this.#reportRoom()
        },
        onNote: (note) => this.#onNote(parseNote(note), atom, assigned),
        onAsk: async (question, { signal }) => answerQuestion(parseQuestion(question), { context, signal }),
      })
      return decode(parseResult(result), 'msgpack')
    } catch (error) {
      throw error instanceof OutOfMemory ? withConsequence(error, isolation) : error
    } finally {
      forget()
      this.#reportRoom()
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#pool[Symbol.asyncDispose]()
  }

  #toRequest({ flow, node, how, args, context, reverted, trace }: IsolatedAtom): AtomRequest {
    const { run, fence, job, schedule, batch } = context
    const { name } = node.atom
    const sent = Object.fromEntries(
      node.needs.flatMap(({ argument }) => (Object.hasOwn(args, argument) ? [[argument, args[argument]]] : [])),
    )
    const encoded = encodeFor(`an argument of task ${name}`, sent)
    const { maxMessage } = this.#options.settings
    if (encoded.length > maxMessage) {
      throw new MessageTooLarge(
        `the arguments of task ${name} are ${formatBytes(encoded.length)}, more than pool.maxMessage ` +
          `(${formatBytes(maxMessage)}): pass a path or URL of the data instead`,
      )
    }
    if (encoded.length > LARGE_MESSAGE_BYTES)
      context.log.warn(
        `the arguments have ${formatBytes(encoded.length)}: each copy to a child process takes time and memory`,
      )
    return {
      ...{ flow, atom: name, how, args: encoded, run, fence, job, schedule, batch, trace },
      checkpoint: encodeFor(`the checkpoint of task ${name}`, context.checkpoint.last),
      reverted: reverted && { ...reverted, result: encodeFor(`the result of task ${name}`, reverted.result) },
    }
  }

  /** Passes on the progress or the log line of a task. @throws an error for a note that no task of this release sends */
  #onNote(note: AtomNote, { context }: IsolatedAtom, child: Child | undefined): void {
    if ('progress' in note) {
      context.progress(note.progress, note.message)
      return
    }
    const { level, msg, ...fields } = note.log
    const { levels } = context.log
    const method = levels.labels[Number(level)] ?? 'info'
    const write = (context.log as unknown as Record<string, (fields: object, text?: string) => void>)[method]
    write?.call(context.log, { ...fields, child: child?.number }, typeof msg === 'string' ? msg : undefined)
  }

  #onLine(child: Child, line: string): void {
    if (this.#options.output === 'stderr') process.stderr.write(`${line}\n`)
    else this.#logOf(child).info({ child: child.number, pid: child.pid }, line)
  }

  #reportRoom(): void {
    if (!this.#wasFull || !this.hasRoom) return
    this.#wasFull = false
    this.#options.onRoom()
  }

  #logOf(child: Child): Logger {
    return this.#contexts.get(child)?.log ?? this.#options.log
  }

  #onEvent(event: PoolEvent): void {
    if (event.kind === 'started') this.#wasReady = true
    this.#options.onEvent(event)
  }

  /** @throws InvalidArgument for a flow that the module lacks; IncompatibleVersion for a flow that differs */
  #assertFacts({ flows }: AtomWorkerFacts): void {
    const digests = new Map(flows.map(({ name, version, digest }) => [`${name} ${version}`, digest]))
    for (const [flow, digest] of this.#digests) {
      const found = digests.get(flow)
      if (found === digest) continue
      const where = `pool.module ${this.#options.modules.join(', ')}`
      const error =
        found === undefined
          ? new InvalidArgument(`${where} does not export flow ${flow}; export it there`)
          : new IncompatibleVersion(
              `flow ${flow} in ${where} differs from the flow in this process: restart this process`,
            )
      if (this.#wasReady && !this.#isChangeReported) {
        this.#isChangeReported = true
        this.#options.onCodeChanged(new IncompatibleVersion(error.message, { cause: error }))
      }
      throw error
    }
  }
}

/** Does what a task in a child has asked for, and returns the answer. */
async function answerQuestion(
  question: AtomQuestion,
  { context, signal }: { readonly context: IsolatedAtom['context']; readonly signal: AbortSignal },
): Promise<Uint8Array | undefined> {
  if ('save' in question) {
    await context.checkpoint.save(decode(question.save, 'msgpack'))
    return undefined
  }
  if ('read' in question)
    return encodeFor('a result of a job on which this one depends', await context.dependencies.read())
  const { key, ...options } = question.take
  await context.limits.take(key, { ...options, signal })
  return undefined
}

/** Returns the error with what follows from it for the job. */
function withConsequence(error: OutOfMemory, { onOutOfMemory }: Isolation): OutOfMemory {
  if (onOutOfMemory === 'retry') return error
  const { message, cause } = error
  if (onOutOfMemory === 'fail') return new OutOfMemory(message, { cause, nonRetryable: true })
  return new OutOfMemory(message, { cause, nextQueue: onOutOfMemory.queue ?? onOutOfMemory.size })
}

/** Returns the flows that have isolated tasks. */
export function isolatedFlows(flows: readonly AnyFlow[]): readonly AnyFlow[] {
  return flows.filter((flow) => compile(flow).atoms.some(({ isolation }) => isolation !== undefined))
}

/** The children of a conductor, for its health and its entity. */
export interface ChildrenHealth {
  readonly available: boolean
  /** The reason why no child can be started. */
  readonly reason?: string
  readonly idle: number
  readonly busy: number
  readonly starting: number
}

/** Returns how many children are idle, busy and starting, and why none can be started. */
export function toChildrenHealth({ refusal, children }: Pick<IsolatedAtoms, 'refusal' | 'children'>): ChildrenHealth {
  const count = (state: ChildStatus['state']) => children.filter((child) => child.state === state).length
  return {
    available: refusal === undefined,
    ...defined({ reason: refusal?.message }),
    ...{ idle: count('idle'), busy: count('busy'), starting: count('starting') },
  }
}

/** Returns how many children are in each state. */
export function toStateCounts(children: readonly ChildStatus[]): Readonly<Record<ChildStatus['state'], number>> {
  const counts = { starting: 0, idle: 0, busy: 0, retiring: 0, dead: 0 }
  for (const { state } of children) counts[state] += 1
  return counts
}

/** Returns the resident memory of the largest child, in bytes; undefined if the memory of no child is known. */
export function largestMemory(children: readonly ChildStatus[]): number | undefined {
  const known = children.flatMap(({ memory }) => memory ?? [])
  return known.length === 0 ? undefined : Math.max(...known)
}

function encodeFor(what: string, value: unknown): Uint8Array {
  try {
    return encode(value, 'msgpack')
  } catch (cause) {
    throw new InvalidArgument(
      `${what} cannot be sent to a child process (${describeError(cause)}); pass plain data, or let the task run ` +
        'without isolation',
      { cause },
    )
  }
}

function toModuleUrl(module: string | URL): string {
  if (module instanceof URL) return module.href
  if (module.startsWith('file:')) return module
  return pathToFileURL(resolve(module)).href
}

/** Returns the URL of the worker, which is beside this file, built or not. */
function workerUrl(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new URL(`./atom-worker.${extension}`, import.meta.url).href
}
