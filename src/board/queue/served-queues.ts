/**
 * The queues that a caller serves. Everything but the choice of the next job (keys, resources, limits, batches, dependencies) is of the board, across
 * its queues. Priorities hold within a queue.
 *
 * | given | the next job is of |
 * |---|---|
 * | `['urgent', 'bulk']` | the first of these queues that has one |
 * | `{ urgent: 3, bulk: 1 }` | the queue from which the fewest jobs were claimed for its weight, among the queues that have one |
 *
 * A name may end with `*`, for all queues with the prefix. These count as one queue: they share a place or a weight, and the claim order
 * decides between their jobs.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { describeName, queueProblem } from '../model/queues.ts'

/** The maximum number of names in a choice. */
const MAX_SERVED = 1_000
/** The greatest weight. */
const MAX_WEIGHT = 1_000_000

/** The queues that are served: names in order, or names with their weights. A name may end with `*`. */
export type ServedQueues = readonly string[] | Readonly<Record<string, number>>

/** A place in the order of the queues that are served: a queue, or the queues of a pattern. */
interface ServedPlace {
  readonly name: string
  readonly weight: number
}

/** The queues that a caller serves. */
export class QueueChoice {
  /** The names and patterns, in their order. */
  readonly places: readonly ServedPlace[]
  readonly isWeighted: boolean
  readonly #known = new Map<string, number>()

  private constructor(places: readonly ServedPlace[], isWeighted: boolean) {
    this.places = places
    this.isWeighted = isWeighted
  }

  /** Parses the option `queues` of a caller. @param what the caller, for errors @throws InvalidArgument */
  static parse(served: ServedQueues, what: string): QueueChoice {
    const entries = Array.isArray(served)
      ? served.map((name: unknown) => ({ name, weight: 1 }))
      : typeof served === 'object' && served !== null
        ? Object.entries(served).map(([name, weight]) => ({ name, weight }))
        : []
    if (entries.length === 0)
      throw new InvalidArgument(
        `${what}: queues must be a list of names such as ['urgent', 'bulk'], or weights such as { urgent: 3, bulk: 1 }`,
      )
    if (entries.length > MAX_SERVED)
      throw new InvalidArgument(`${what}: queues has ${entries.length} names, at most ${MAX_SERVED} are allowed`)
    const places = entries.map(({ name, weight }) => ({
      name: toServedName(name, what),
      weight: toWeight(name, weight, what),
    }))
    const twice = places.find(({ name }, index) => places.findIndex((other) => other.name === name) !== index)
    if (twice) throw new InvalidArgument(`${what}: queues names ${twice.name} twice`)
    return new QueueChoice(places, !Array.isArray(served))
  }

  /** The exact names; undefined if there is a pattern. */
  get names(): readonly string[] | undefined {
    return this.places.some(({ name }) => name.endsWith('*')) ? undefined : this.places.map(({ name }) => name)
  }

  includes(queue: string): boolean {
    return this.placeOf(queue) !== -1
  }

  /** Returns the index of the first place to which a queue belongs: its exact name, else the first pattern; -1 if it is not served. */
  placeOf(queue: string): number {
    const known = this.#known.get(queue)
    if (known !== undefined) return known
    const exact = this.places.findIndex(({ name }) => name === queue)
    const place = exact === -1 ? this.places.findIndex(({ name }) => isPatternOf(name, queue)) : exact
    // Other programs choose the names: they must not fill the memory.
    if (this.#known.size >= MAX_SERVED) this.#known.clear()
    this.#known.set(queue, place)
    return place
  }

  /** The names with their weights, for people: `urgent, bulk` or `urgent=3, bulk=1`. */
  toString(): string {
    return this.places.map(({ name, weight }) => (this.isWeighted ? `${name}=${weight}` : name)).join(', ')
  }
}

function isPatternOf(pattern: string, queue: string): boolean {
  return pattern.endsWith('*') && queue.startsWith(pattern.slice(0, -1))
}

function toServedName(name: unknown, what: string): string {
  const text = typeof name === 'string' && name.endsWith('*') ? name.slice(0, -1) : name
  const problem = text === '' && name === '*' ? undefined : queueProblem(text)
  if (problem === undefined) return String(name)
  throw new InvalidArgument(`${what}: ${problem}; a pattern has one *, at its end, such as tenant-*`)
}

function toWeight(name: unknown, weight: unknown, what: string): number {
  if (Number.isSafeInteger(weight) && Number(weight) >= 1 && Number(weight) <= MAX_WEIGHT) return Number(weight)
  throw new InvalidArgument(
    `${what}: the weight of queue ${describeName(name)} must be a whole number from 1 to ${MAX_WEIGHT}, got ${describeName(weight)}; ` +
      'leave a queue out that is not to be served',
  )
}
