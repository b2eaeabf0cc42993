/** Runs a task alone, as an engine does: with its hooks, and its result as later tasks get it. */
import { roundTrip } from '../core/codec.ts'
import { InvalidArgument } from '../core/errors.ts'
import { isTask, type Provides, type Rebind, type Task } from '../flow/index.ts'
import { type FakeContext, fakeContext } from './fake-context.ts'

/** The arguments of a task; injected ones are optional. */
type TaskArguments<A, J> = Omit<A, keyof J> & Partial<A>

/** A context may be left out, unless the task needs services. */
type ContextFor<S, R> = unknown extends S ? [ctx?: FakeContext<unknown, R>] : [ctx: FakeContext<S, R>]

/**
 * Executes the task, and its hooks. Its deadline is not watched: `ctx.abort()` is what a deadline does.
 *
 * @returns what later tasks see: plain data, as the logbook gives it back
 * @throws what the task throws; InvalidArgument for a result that a logbook could not hold
 * @example await runTask(greet, { name: 'Ada' })     // 'Hello, Ada!'
 */
export async function runTask<A, P extends Provides, R, B extends Rebind, J extends object, S>(
  task: Task<A, P, R, B, J, S>,
  args: NoInfer<TaskArguments<A, J>>,
  ...[context]: ContextFor<NoInfer<S>, NoInfer<R> | undefined>
): Promise<Awaited<R>> {
  assertTask(task, 'runTask')
  const ctx = (context ?? fakeContext()) as FakeContext<S, R>
  const all = { ...task.inject, ...args } as A
  await task.preExecute?.(all, ctx)
  try {
    const result = await task.execute(all, ctx)
    return roundTrip(result) as Awaited<R>
  } finally {
    await task.postExecute?.(all, ctx)
  }
}

/**
 * Undoes the task, with its hooks; nothing where it has no `revert`. Give the context what `execute` returned, or why it
 * failed: a task that died halfway has neither.
 *
 * @example await revertTask(charge, { amount: 3 }, fakeContext({ services: { bank }, result: receipt }))
 */
export async function revertTask<A, P extends Provides, R, B extends Rebind, J extends object, S>(
  task: Task<A, P, R, B, J, S>,
  args: NoInfer<TaskArguments<A, J>>,
  ...[context]: ContextFor<NoInfer<S>, NoInfer<R> | undefined>
): Promise<void> {
  assertTask(task, 'revertTask')
  const ctx = (context ?? fakeContext()) as FakeContext<S, R>
  const all = { ...task.inject, ...args } as A
  await task.preRevert?.(all, ctx)
  try {
    await task.revert?.(all, ctx)
  } finally {
    await task.postRevert?.(all, ctx)
  }
}

function assertTask(task: unknown, what: string): void {
  if (!isTask(task)) throw new InvalidArgument(`${what} takes a task, as task(…) makes it, and its arguments`)
}
