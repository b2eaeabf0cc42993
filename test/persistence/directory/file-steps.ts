/**
 * Stops a writer between two of its steps in the file system, so that others can run meanwhile.
 *
 * A test file mocks `node:fs/promises` with {@link stepwise}. An {@link StepwiseProcess} does its work in a context of its own, and
 * stops before the step that it is told; everything outside of an actor runs as usual. A listing is two steps: it may or
 * may not show a name that came or went between them, as POSIX allows. What it shows then is the {@link Listing}.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type * as Files from 'node:fs/promises'
import { createDeferred, type Deferred } from '../../../src/core/async/abort.ts'

/**
 * Which of the names that came or went while it ran a listing shows: none, all, or, as a reader would be misled most, the
 * first of them in the order of their names.
 */
export type Listing = 'stable' | 'all' | 'first'

/** The number of steps before it, or whether the last of these is the one to stop before. */
export type Stop = number | ((steps: readonly string[]) => boolean)

const current = new AsyncLocalStorage<StepwiseProcess>()

export class StepwiseProcess {
  readonly steps: string[] = []
  readonly #stopBefore: Stop
  #hasStopped = false
  readonly #listing: Listing
  readonly #stopped = createDeferred<'stopped'>()
  readonly #goOn: Deferred<void> = createDeferred()

  constructor(options: { stopBefore: Stop; listing?: Listing }) {
    this.#stopBefore = options.stopBefore
    this.#listing = options.listing ?? 'stable'
  }

  /** Begins the work; resolves when the actor has stopped, or with 'finished' when it ended before that step. */
  async begin<T>(work: () => Promise<T>): Promise<{ at: 'stopped' | 'finished'; end: () => Promise<Ending<T>> }> {
    const ending = current.run(this, work).then(
      (value): Ending<T> => ({ value }),
      (error: unknown): Ending<T> => ({ error }),
    )
    const at = await Promise.race([this.#stopped.promise, ending.then(() => 'finished' as const)])
    const end = () => {
      this.#goOn.resolve()
      return ending
    }
    return { at, end }
  }

  async step(name: string): Promise<void> {
    this.steps.push(name)
    const before = this.#stopBefore
    const isHere = typeof before === 'number' ? this.steps.length - 1 === before : before(this.steps)
    if (!isHere || this.#hasStopped) return
    this.#hasStopped = true
    this.#stopped.resolve('stopped')
    await this.#goOn.promise
  }

  listed(before: readonly string[], after: readonly string[]): string[] {
    const stable = before.filter((name) => after.includes(name))
    const moved = [...before, ...after].filter((name) => !stable.includes(name)).toSorted()
    if (this.#listing === 'stable') return stable
    return [...stable, ...(this.#listing === 'all' ? moved : moved.slice(0, 1))]
  }
}

export type Ending<T> =
  | { readonly value: T; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: unknown }

async function step(name: string): Promise<void> {
  await current.getStore()?.step(name)
}

const SIMPLE = ['link', 'unlink', 'rename', 'rm', 'mkdir', 'readFile', 'stat', 'access'] as const

/** The functions of `node:fs/promises`, each a step of the actor that calls it. Nothing waits for a disk. */
export function stepwise(real: typeof Files): typeof Files {
  const simple = Object.fromEntries(
    SIMPLE.map((name) => [
      name,
      async (...parameters: unknown[]) => {
        await step(name)
        return Reflect.apply(real[name], undefined, parameters)
      },
    ]),
  )
  const readdir = async (...parameters: unknown[]): Promise<unknown> => {
    await step('readdir')
    const before: unknown = await Reflect.apply(real.readdir, undefined, parameters)
    const actor = current.getStore()
    if (!actor || !areNames(before)) return before
    await actor.step('readdir, its second half')
    // A folder that went meanwhile shows what is left in it: nothing.
    const after: unknown = await Reflect.apply(real.readdir, undefined, parameters).catch(() => [])
    return areNames(after) ? actor.listed(before, after) : before
  }
  const open = async (...parameters: unknown[]) => {
    await step('open')
    return withSteps(await Reflect.apply(real.open, undefined, parameters))
  }
  return { ...real, ...simple, readdir, open } as typeof Files
}

function areNames(listed: unknown): listed is string[] {
  return Array.isArray(listed) && listed.every((name) => typeof name === 'string')
}

function withSteps(file: Files.FileHandle): Files.FileHandle {
  return new Proxy(file, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof value !== 'function') return value
      if (key === 'sync' || key === 'datasync') return () => step(key)
      return async (...parameters: unknown[]) => {
        if (key === 'write') await step(key)
        return Reflect.apply(value, target, parameters)
      }
    },
  })
}
