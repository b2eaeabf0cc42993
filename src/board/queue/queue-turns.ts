/** Chooses between weighted queues. */
import { QueueChoice, type ServedQueues } from './served-queues.ts'

/**
 * Chooses the entry of a weighted {@link QueueChoice} from which the next job is taken, by stride scheduling. Each entry has a counter, its pass, to
 * which a claim adds 1 / weight. The entry with the smallest pass that has a job is next. An entry without jobs gets no more turns for that
 * later.
 */
export class QueueTurns {
  readonly choice: QueueChoice
  readonly #passOfEntry: number[]
  /** The pass at which the last job was taken. */
  #currentPass = 0

  constructor(choice: QueueChoice) {
    this.choice = choice
    this.#passOfEntry = choice.entries.map(() => 0)
  }

  /**
   * Returns the indexes of the entries in the order in which they are asked for the next job.
   *
   * @param reserved the index of each job that is chosen already and not granted yet
   */
  order(reserved: readonly number[]): readonly number[] {
    const passes = this.#passOfEntry.map((pass, index) => {
      const count = reserved.filter((each) => each === index).length
      return Math.max(pass, this.#currentPass) + count * this.#stride(index)
    })
    return passes.map((_, index) => index).sort((a, b) => (passes[a] ?? 0) - (passes[b] ?? 0) || a - b)
  }

  /** Notes that a job of the queue was claimed. */
  noteClaimed(queue: string): void {
    const index = this.choice.indexOf(queue)
    if (index === -1) return
    const pass = Math.max(this.#passOfEntry[index] ?? 0, this.#currentPass)
    this.#passOfEntry[index] = pass + this.#stride(index)
    this.#currentPass = Math.max(this.#currentPass, pass)
  }

  #stride(index: number): number {
    return 1 / (this.choice.entries[index]?.weight ?? 1)
  }
}

/** The number of choices whose turns are remembered. */
const MAX_TURNS = 100

/** Keeps one {@link QueueTurns} for each choice of queues, so that weights hold across the calls of a board. */
export class TurnsOfCallers {
  readonly #known = new WeakMap<object, QueueTurns>()
  readonly #byText = new Map<string, QueueTurns>()

  /** Returns the turns of a caller; undefined for a caller that serves all queues. @throws InvalidArgument */
  of(served: ServedQueues | undefined, what: string): QueueTurns | undefined {
    if (served === undefined) return undefined
    const known = this.#known.get(Object(served))
    if (known) return known
    const choice = QueueChoice.parse(served, what)
    const text = choice.toString()
    const turns = this.#byText.get(text) ?? new QueueTurns(choice)
    // A map keeps the order of insertion: the choice that was used longest ago is first.
    this.#byText.delete(text)
    this.#byText.set(text, turns)
    for (const [oldest] of this.#byText) {
      if (this.#byText.size <= MAX_TURNS) break
      this.#byText.delete(oldest)
    }
    // The caller may change an option that is not frozen before its next call.
    if (Object.isFrozen(served)) this.#known.set(served, turns)
    return turns
  }
}
