/** Tasks that apply a function to values: TaskFlow's map and reduce functors. */
import { InvalidArgument } from '../../core/errors.ts'
import { type Task, task } from './task.ts'

interface FunctorOptions<Q extends string, P extends string> {
  /** The names of at least two values, in the order in which the function gets them. */
  readonly requires: readonly [Q, Q, ...Q[]]
  readonly provides: P
}

/**
 * Returns a task that applies a function to each of several values, and provides the list of its results, in the order of
 * `requires`.
 *
 * @throws InvalidArgument for fewer than two values
 * @example mapTask('squares', { requires: ['a', 'b'], provides: 'squares', map: (n: number) => n * n })
 */
export function mapTask<V, R, const Q extends string, const P extends string>(
  name: string,
  options: FunctorOptions<Q, P> & { readonly map: (value: V) => R | Promise<R> },
): Task<{ [K in Q]: V }, P, R[]> {
  const { map } = options
  assertFunctor(name, { requires: options.requires, work: map })
  const requires: readonly Q[] = options.requires
  return task(name, {
    requires,
    provides: options.provides,
    execute: (args: { [K in Q]: V }): Promise<R[]> => waitForAll(requires.map(async (key) => map(args[key]))),
  })
}

/** Waits for all, also when one fails: otherwise the others would still run while the flow is reverted. */
async function waitForAll<R>(mapped: readonly Promise<R>[]): Promise<R[]> {
  await Promise.allSettled(mapped)
  return Promise.all(mapped)
}

/**
 * Returns a task that folds several values into one, with a function of two values, from the first on.
 *
 * @throws InvalidArgument for fewer than two values
 * @example reduceTask('sum', { requires: ['a', 'b', 'c'], provides: 'sum', reduce: (a: number, b: number) => a + b })
 */
export function reduceTask<V, const Q extends string, const P extends string>(
  name: string,
  options: FunctorOptions<Q, P> & { readonly reduce: (before: V, value: V) => V | Promise<V> },
): Task<{ [K in Q]: V }, P, V> {
  const { reduce } = options
  assertFunctor(name, { requires: options.requires, work: reduce })
  const requires: readonly Q[] = options.requires
  const [first, ...rest] = options.requires
  return task(name, {
    requires,
    provides: options.provides,
    execute: async (args: { [K in Q]: V }): Promise<V> => {
      let folded = args[first]
      for (const key of rest) folded = await reduce(folded, args[key])
      return folded
    },
  })
}

function assertFunctor(name: string, { requires, work }: { requires: unknown; work: unknown }): void {
  if (typeof work !== 'function') throw new InvalidArgument(`task ${name}: map or reduce must be a function`)
  if (!Array.isArray(requires) || requires.length < 2)
    throw new InvalidArgument(`task ${name}: requires must name at least two values`)
}
