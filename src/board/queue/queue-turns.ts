/** Whose turn it is among weighted queues. */
import { QueueChoice, type ServedQueues } from './served-queues.ts'

/**
 * Decides from which place of a weighted {@link QueueChoice} the next job is taken: stride scheduling. Each claimed job moves the pass of its
 * place by 1 / weight, and the place with the smallest pass that has a job is next. What a place did not take while it had no jobs is not made
 * up for later.
 */
export class QueueTurns {
  readonly choice: QueueChoice
  readonly #passes: number[]
  /** The pass at which the last job was taken. */
  #pass = 0

  constructor(choice: QueueChoice) {
    this.choice = choice
    this.#passes = choice.places.map(() => 0)
  }

  /** Returns the order in which places are asked for the next job, after these jobs were chosen and are not granted yet. */
  order(chosen: readonly number[]): readonly number[] {
    const passes = this.#passes.map((pass, place) => {
      const count = chosen.filter((each) => each === place).length
      return Math.max(pass, this.#pass) + count * this.#stride(place)
    })
    return passes.map((_, place) => place).sort((a, b) => (passes[a] ?? 0) - (passes[b] ?? 0) || a - b)
  }

  /** Notes that a job of the queue was claimed. */
  noteClaimed(queue: string): void {
    const place = this.choice.placeOf(queue)
    if (place === -1) return
    const pass = Math.max(this.#passes[place] ?? 0, this.#pass)
    this.#passes[place] = pass + this.#stride(place)
    this.#pass = Math.max(this.#pass, pass)
  }

  #stride(place: number): number {
    return 1 / (this.choice.places[place]?.weight ?? 1)
  }
}

/** The number of choices whose turns are remembered. */
const MAX_TURNS = 100

/** The turns of the callers of a board: callers that serve the same queues with the same weights share them, and a caller has the same in each call. */
export class TurnsOfCallers {
  readonly #known = new WeakMap<object, QueueTurns>()
  readonly #byText = new Map<string, QueueTurns>()

  /** Returns the turns of a caller; undefined for one that serves all queues. @throws InvalidArgument */
  of(served: ServedQueues | undefined, what: string): QueueTurns | undefined {
    if (served === undefined) return undefined
    const known = this.#known.get(Object(served))
    if (known) return known
    const choice = QueueChoice.parse(served, what)
    const text = choice.toString()
    const turns = this.#byText.get(text) ?? new QueueTurns(choice)
    if (this.#byText.size >= MAX_TURNS) this.#byText.clear()
    this.#byText.set(text, turns)
    if (Object.isFrozen(served)) this.#known.set(served, turns)
    return turns
  }
}
