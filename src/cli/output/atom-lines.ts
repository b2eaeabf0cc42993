/** Progress of a flow, a line for each transition, on standard error: standard output is for results only. */
import { describeFailure } from '../../core/failure.ts'
import type { Redactor } from '../../core/redaction.ts'
import type { FlowState } from '../../core/states.ts'
import { monotonic } from '../../core/time.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { AtomDetail, FlowLog, Persistence, Transition } from '../../persistence/index.ts'
import { failureView, formatDuration } from '../../views/index.ts'
import type { CliContext } from '../context.ts'
import { displayWidth } from './render/columns.ts'
import { choosePaint, type Paint, stateTone } from './render/paint.ts'
import { escapeUnprintable } from './render/text.ts'

export interface AtomLinesOptions {
  readonly context: CliContext
  readonly flow: AnyFlow
  readonly redaction: Redactor
  readonly quiet: boolean
}

export class AtomLines {
  readonly #options: AtomLinesOptions
  readonly #paint: Paint
  readonly #width: number
  readonly #began = new Map<string, number>()
  readonly #printed = new Map<string, string>()
  /** The state that was recorded last. */
  state: FlowState | undefined

  constructor(options: AtomLinesOptions) {
    this.#options = options
    this.#paint = choosePaint(options.context.stderr, options.context.env)
    this.#width = Math.max(...atomNames(options.flow).map(displayWidth))
  }

  print({ state, atoms = [] }: Transition): void {
    if (state !== undefined) this.state = state
    for (const atom of atoms) this.#printAtom(atom)
  }

  #printAtom(atom: AtomDetail): void {
    const { name, state } = atom
    if (state === 'PENDING') return
    const done = this.#formatProgress(atom)
    const key = state === 'RUNNING' ? `${state}${done}` : state
    if (this.#printed.get(name) === key) return
    if (this.#printed.get(name)?.split(' ')[0] !== state && isBeginning(state)) this.#began.set(name, monotonic())
    this.#printed.set(name, key)
    if (this.#options.quiet) return
    const padding = ' '.repeat(Math.max(0, this.#width - displayWidth(name)))
    const shown = this.#paint(state, stateTone(state))
    this.#options.context.stderr.write(`${escapeUnprintable(name)}${padding}  ${shown}${this.#details(atom, done)}\n`)
  }

  #formatProgress({ meta, progressMessage }: AtomDetail): string {
    const percent = typeof meta['progress'] === 'number' ? ` ${Math.round(meta['progress'] * 100)}%` : ''
    const message = progressMessage === undefined ? '' : ` ${this.#options.redaction.text(progressMessage)}`
    return escapeUnprintable(`${percent}${message}`)
  }

  #details({ name, state, failure, revertFailure }: AtomDetail, done: string): string {
    if (isBeginning(state)) return state === 'RUNNING' ? done : ''
    const began = this.#began.get(name)
    this.#began.delete(name)
    const took = began === undefined ? '' : `  ${formatDuration(monotonic() - began)}`
    // An atom that failed without anything to undo is reverted at once.
    const reason = state === 'REVERT_FAILURE' ? revertFailure : state === 'SUCCESS' ? undefined : failure
    const why = reason ? `  ${describeFailure(failureView(reason, this.#options.redaction))}` : ''
    return `${took}${escapeUnprintable(why)}`
  }
}

function isBeginning(state: string): boolean {
  return state === 'RUNNING' || state === 'REVERTING' || state === 'RETRYING'
}

function atomNames({ atoms, retry }: AnyFlow): string[] {
  const own = retry ? [retry.name] : []
  return [...own, ...atoms.flatMap((part) => (part.kind === 'flow' ? atomNames(part) : [part.name]))]
}

export type TransitionListener = (transition: Transition) => void

/** Wraps a persistence and passes everything on. Closing the wrapper leaves the persistence open. */
export function watchPersistence(persistence: Persistence, listener: TransitionListener): Persistence {
  const close = async () => undefined
  return {
    uri: persistence.uri,
    encrypts: persistence.encrypts === true,
    open: close,
    close,
    createBook: (book) => persistence.createBook(book),
    updateBook: (uuid, change) => persistence.updateBook(uuid, change),
    createFlow: (request) => persistence.createFlow(request),
    acquire: async (request) => watchFlowLog(await persistence.acquire(request), listener),
    getBook: (uuid) => persistence.getBook(uuid),
    listBooks: (query) => persistence.listBooks(query),
    destroyBook: (uuid, options) => persistence.destroyBook(uuid, options),
    [Symbol.asyncDispose]: close,
  }
}

function watchFlowLog(log: FlowLog, listener: TransitionListener): FlowLog {
  return {
    flow: log.flow,
    write: async (transition) => {
      await log.write(transition)
      listener(transition)
    },
    close: () => log.close(),
    [Symbol.asyncDispose]: () => log[Symbol.asyncDispose](),
  }
}
