/** How far a flow is, a line for each step, on standard error: standard output belongs to results. */
import { describeFailure } from '../core/failure.ts'
import type { Redaction } from '../core/redaction.ts'
import type { FlowState } from '../core/states.ts'
import { monotonic } from '../core/time.ts'
import type { AnyFlow } from '../flow/index.ts'
import type { AtomDetail, Transition } from '../persistence/index.ts'
import type { CliContext } from './context.ts'
import { span } from './render/age.ts'
import { type Paint, paintFor, toneOf } from './render/paint.ts'
import { printable, widthOf } from './render/text.ts'
import { failureView } from './views.ts'

export interface AtomLinesOptions {
  readonly context: CliContext
  readonly flow: AnyFlow
  readonly redaction: Redaction
  readonly quiet: boolean
}

export class AtomLines {
  readonly #options: AtomLinesOptions
  readonly #paint: Paint
  readonly #width: number
  readonly #began = new Map<string, number>()
  readonly #said = new Map<string, string>()
  /** As it was last recorded. */
  state: FlowState | undefined

  constructor(options: AtomLinesOptions) {
    this.#options = options
    this.#paint = paintFor(options.context.stderr, options.context.env)
    this.#width = Math.max(...namesOf(options.flow).map(widthOf))
  }

  told({ state, atoms = [] }: Transition): void {
    if (state !== undefined) this.state = state
    for (const atom of atoms) this.#tell(atom)
  }

  #tell(atom: AtomDetail): void {
    const { name, state } = atom
    if (state === 'PENDING') return
    const done = typeof atom.meta['progress'] === 'number' ? ` ${Math.round(atom.meta['progress'] * 100)}%` : ''
    const key = state === 'RUNNING' ? `${state}${done}` : state
    if (this.#said.get(name) === key) return
    if (this.#said.get(name)?.split(' ')[0] !== state && isBeginning(state)) this.#began.set(name, monotonic())
    this.#said.set(name, key)
    if (this.#options.quiet) return
    const padding = ' '.repeat(Math.max(0, this.#width - widthOf(name)))
    const shown = this.#paint(state, toneOf(state))
    this.#options.context.stderr.write(`${printable(name)}${padding}  ${shown}${this.#rest(atom, done)}\n`)
  }

  #rest({ name, state, failure, revertFailure }: AtomDetail, done: string): string {
    if (isBeginning(state)) return state === 'RUNNING' ? done : ''
    const began = this.#began.get(name)
    this.#began.delete(name)
    const took = began === undefined ? '' : `  ${span(monotonic() - began)}`
    // What failed, and had nothing to undo, is reverted at once.
    const reason = state === 'REVERT_FAILURE' ? revertFailure : state === 'SUCCESS' ? undefined : failure
    const why = reason ? `  ${describeFailure(failureView(reason, this.#options.redaction))}` : ''
    return `${took}${printable(why)}`
  }
}

function isBeginning(state: string): boolean {
  return state === 'RUNNING' || state === 'REVERTING' || state === 'RETRYING'
}

function namesOf({ atoms, retry }: AnyFlow): string[] {
  const own = retry ? [retry.name] : []
  return [...own, ...atoms.flatMap((part) => (part.kind === 'flow' ? namesOf(part) : [part.name]))]
}
