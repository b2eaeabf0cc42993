/** The linear pattern: one atom after the other, in the order in which they are written. */
import { Duplicate, InvalidArgument } from '../core/errors.ts'
import { assertOptions } from '../core/options.ts'
import { brand } from './brand.ts'
import type { Fitting, Results } from './fit.ts'
import { type Flow, type Input, isInput } from './flow.ts'
import { type AnyTask, isName, isTask } from './task.ts'

/**
 * Describes a flow that executes its tasks in order and, when one fails, reverts them in reverse order. The compiler
 * checks that each task gets what it requires, with the right type, from the input or from a task before it.
 *
 * A name that is in the store as well as provided by a task comes from the store, for every task.
 *
 * @param nameOrOptions the name under which it is posted, or `{ name, version }`; the version is `'1.0'` by default
 * @throws Duplicate when two tasks have the same name
 * @throws InvalidArgument when there are no tasks, or something in the list is none
 * @example const hello = linear('hello', input<{ name: string }>(), greet, print)
 */
export function linear<I, T extends readonly AnyTask[]>(
  nameOrOptions: string | { readonly name: string; readonly version?: string },
  store: Input<I>,
  ...atoms: T extends Fitting<I, T> ? T : Fitting<I, T>
): Flow<I, Results<T>> {
  const { name, version = '1.0' } = typeof nameOrOptions === 'string' ? { name: nameOrOptions } : (nameOrOptions ?? {})
  if (!isName(name)) throw new InvalidArgument("a flow needs a name: linear('hello', input<…>(), firstTask, …)")
  if (typeof nameOrOptions === 'object') assertOptions(nameOrOptions, { name: true, version: true }, `flow ${name}`)
  if (!isName(version)) throw new InvalidArgument(`flow ${name}: version has to be a text such as '1.0'`)
  if (!isInput(store))
    throw new InvalidArgument(`flow ${name}: its second argument has to be input<…>(), then come its tasks`)
  const tasks = checkedTasks(name, atoms)
  return brand('flow', { kind: 'flow', pattern: 'linear', name, version, atoms: tasks, ...needs(tasks) })
}

function checkedTasks(flow: string, atoms: readonly unknown[]): readonly AnyTask[] {
  if (atoms.length === 0)
    throw new InvalidArgument(
      `flow ${flow} has no tasks: name them after its input, as in linear('hello', input<…>(), greet)`,
    )
  const tasks = new Map<string, AnyTask>()
  for (const [index, atom] of atoms.entries()) {
    if (!isTask(atom))
      throw new InvalidArgument(`flow ${flow}: number ${index + 1} in its list is no task; task(…) makes one`)
    if (tasks.has(atom.name))
      throw new Duplicate(
        `flow ${flow}: two of its tasks are named ${atom.name}; its logbook could not tell them apart`,
      )
    tasks.set(atom.name, atom)
  }
  return Object.freeze([...tasks.values()])
}

/** A name counts as required where it is required before it is provided. */
function needs(tasks: readonly AnyTask[]): { requires: readonly string[]; provides: readonly string[] } {
  const requires = new Set<string>()
  const provides = new Set<string>()
  for (const task of tasks) {
    for (const name of task.requires) if (!provides.has(name)) requires.add(name)
    if (task.provides !== undefined) provides.add(task.provides)
  }
  return { requires: Object.freeze([...requires]), provides: Object.freeze([...provides]) }
}
