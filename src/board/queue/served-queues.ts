/**
 * The queues that a caller serves. Queues decide only which job is next, and priorities order the jobs of a queue. Keys, resources, limits, batches
 * and dependencies belong to the whole board.
 *
 * | option | where the next job comes from |
 * |---|---|
 * | `['urgent', 'bulk']` | the first of these queues that has a claimable job |
 * | `{ urgent: 3, bulk: 1 }` | of the queues that have a claimable job, the one with the smallest quotient of claims and weight |
 *
 * A name may end with `*`, for all queues with the prefix. These count as one queue: they share an index or a weight, and the claim order
 * decides between their jobs.
 */
import { InvalidArgument } from '../../core/errors.ts'
import { isNameOfQueue } from '../../core/job-names.ts'
import { describeValue, queueProblem } from '../model/queues.ts'

/** The maximum number of names in a choice. */
const MAX_SERVED = 1_000
/** The maximum number of queues whose index is remembered. */
const MAX_KNOWN = 1_000
/** The greatest weight. */
const MAX_WEIGHT = 1_000_000

/** The queues that are served: names in order, or names with their weights. A name may end with `*`. */
export type ServedQueues = readonly string[] | Readonly<Record<string, number>>

/** A queue that is served, or the queues of a pattern. */
interface ServedEntry {
  readonly name: string
  readonly weight: number
}

/** The queues that a caller serves. */
export class QueueChoice {
  /** The names and patterns, in their order. */
  readonly entries: readonly ServedEntry[]
  readonly isWeighted: boolean
  readonly #known = new Map<string, number>()

  private constructor(entries: readonly ServedEntry[], isWeighted: boolean) {
    this.entries = entries
    this.isWeighted = isWeighted
  }

  /** Parses the option `queues` of a caller. @param what the caller, for errors @throws InvalidArgument */
  static parse(served: ServedQueues, what: string): QueueChoice {
    const given = Array.isArray(served)
      ? Array.from(served as readonly unknown[], (name) => ({ name, weight: 1 }))
      : typeof served === 'object' && served !== null
        ? Object.entries(served).map(([name, weight]) => ({ name, weight }))
        : []
    if (given.length === 0)
      throw new InvalidArgument(
        `${what}: queues must be a list of names such as ['urgent', 'bulk'], or weights such as { urgent: 3, bulk: 1 }`,
      )
    if (given.length > MAX_SERVED)
      throw new InvalidArgument(`${what}: queues has ${given.length} names, at most ${MAX_SERVED} are allowed`)
    const entries = given.map(({ name, weight }) => ({
      name: toServedName(name, what),
      weight: toWeight(name, weight, what),
    }))
    const twice = entries.find(({ name }, index) => entries.findIndex((other) => other.name === name) !== index)
    if (twice) throw new InvalidArgument(`${what}: queues contains ${describeValue(twice.name)} twice`)
    return new QueueChoice(entries, !Array.isArray(served))
  }

  /** The exact names; undefined if there is a pattern. */
  get names(): readonly string[] | undefined {
    return this.entries.some(({ name }) => name.endsWith('*')) ? undefined : this.entries.map(({ name }) => name)
  }

  includes(queue: string): boolean {
    return this.indexOf(queue) !== -1
  }

  /** Returns the index of the entry to which a queue belongs: its exact name, else the first pattern; -1 if it is not served. */
  indexOf(queue: string): number {
    const known = this.#known.get(queue)
    if (known !== undefined) return known
    const exact = this.entries.findIndex(({ name }) => name === queue)
    const index = exact === -1 ? this.entries.findIndex(({ name }) => isNameOfQueue(name, queue)) : exact
    // Other programs choose the names of queues. Without a limit they could fill the memory.
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(queue, index)
    return index
  }

  /** Returns the names with their weights, for people, and as the identity of a choice: `urgent, bulk` or `urgent=3, bulk=1`. */
  toString(): string {
    return this.entries.map(({ name, weight }) => (this.isWeighted ? `${name}=${weight}` : name)).join(', ')
  }
}

function toServedName(name: unknown, what: string): string {
  const text = typeof name === 'string' && name.endsWith('*') ? name.slice(0, -1) : name
  const problem = text === '' && name === '*' ? undefined : queueProblem(text)
  if (problem === undefined) return String(name)
  throw new InvalidArgument(`${what}: ${problem}; * is allowed only as the last character, as in tenant-*`)
}

function toWeight(name: unknown, weight: unknown, what: string): number {
  if (Number.isSafeInteger(weight) && Number(weight) >= 1 && Number(weight) <= MAX_WEIGHT) return Number(weight)
  throw new InvalidArgument(
    `${what}: the weight of queue ${describeValue(name)} must be a whole number from 1 to ${MAX_WEIGHT}, got ${describeValue(weight)}; ` +
      'to stop serving the queue, remove it from queues',
  )
}
