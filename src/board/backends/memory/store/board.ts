/** The open board of a memory backend, which all of its roles share. */
import { InvalidState } from '../../../../core/errors.ts'
import type { BackendSink } from '../../../contract/index.ts'

export interface OpenBoard {
  readonly sink: BackendSink
  session: string
}

/** @typeParam Steps the steps that a role needs */
export class MemoryBoard<Steps> {
  readonly #uri: string
  readonly #steps: Steps
  readonly #watches = new Map<string, () => void>()
  #open: OpenBoard | undefined

  constructor(options: { readonly uri: string; readonly steps: Steps }) {
    this.#uri = options.uri
    this.#steps = options.steps
  }

  /** The parts of the open board; undefined while it is not open. */
  get open(): OpenBoard | undefined {
    return this.#open
  }

  /** Returns the parts of the open board. @throws InvalidState while it is not open */
  requireOpen(): OpenBoard {
    if (this.#open) return this.#open
    throw new InvalidState(`board ${this.#uri} is not open`)
  }

  /** The steps of the board. @throws InvalidState while it is not open */
  get steps(): Steps {
    this.requireOpen()
    return this.#steps
  }

  begin(open: OpenBoard): void {
    this.#open = open
  }

  /** Ends all watches; returns what the board had while it was open. */
  end(): OpenBoard | undefined {
    const open = this.#open
    this.#open = undefined
    for (const name of this.#watches.keys()) this.unwatch(name)
    return open
  }

  /** Begins a watch, unless one of this name has begun; `begin` returns the function that ends it. */
  watch(name: string, begin: () => () => void): void {
    if (!this.#watches.has(name)) this.#watches.set(name, begin())
  }

  unwatch(name: string): void {
    this.#watches.get(name)?.()
    this.#watches.delete(name)
  }
}
