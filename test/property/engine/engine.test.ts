/** For random flows with random failures, whoever runs them, and however often they are killed. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StorageFailure } from '../../../src/core/errors.ts'
import { Engine } from '../../../src/engine/index.ts'
import { type AnyFlow, compile, type ExecutionNode } from '../../../src/flow/index.ts'
import type { FlowDetail } from '../../../src/persistence/index.ts'
import { dyingAt, TaskRecorder } from '../../engine/workshop.ts'
import { count } from '../../support/counts.ts'
import { type Event, flowOf, plans } from './plans.ts'

const RUNS = { numRuns: count({ test: 40, long: 2_000 }) }

/** For each atom the names of all that come after it, however far. */
function successorsOf(flow: AnyFlow): ReadonlyMap<string, ReadonlySet<string>> {
  const after = (from: ExecutionNode) => {
    const found = new Set(from.successors)
    for (const node of found) for (const next of node.successors) found.add(next)
    return new Set([...found].flatMap(({ atom }) => (atom ? [atom.name] : [])))
  }
  return new Map(compile(flow).atoms.map((node) => [node.atom.name, after(node)]))
}

/** Hears what tasks do, and objects to what the graph does not allow. */
class CallRecorder {
  /** What is there: begun, or begun and done. */
  readonly there = new Map<string, Event>()
  readonly objections: string[] = []
  #after: ReadonlyMap<string, ReadonlySet<string>> = new Map()
  #reverted: ReadonlySet<string> = new Set()

  watch(flow: AnyFlow): void {
    this.#after = successorsOf(flow)
    this.#reverted = new Set(
      compile(flow).atoms.flatMap(({ atom }) => (atom.kind === 'task' && atom.revert ? [atom.name] : [])),
    )
  }

  hear(name: string, event: Event): void {
    if (event === 'undone') {
      for (const after of this.#after.get(name) ?? [])
        if (this.#reverted.has(after) && this.there.has(after)) this.objections.push(`${name} undone before ${after}`)
      this.there.delete(name)
      return
    }
    if (event === 'started') {
      for (const [before, after] of this.#after)
        if (after.has(name) && before.startsWith('t') && this.there.get(before) !== 'done')
          this.objections.push(`${name} started before ${before} was done`)
    }
    this.there.set(name, event)
  }

  /** Tasks with a revert that have left something. */
  get left(): string[] {
    return [...this.there.keys()].filter((name) => this.#reverted.has(name)).sort()
  }
}

interface EngineScenario {
  readonly detail: FlowDetail
  readonly observer: CallRecorder
  readonly writes: number
}

/** `kill` is the write at which each run dies, from the first to the last given; later ones do not die. */
async function tell(
  plan: Parameters<typeof flowOf>[0],
  options: { concurrency: number; kills?: readonly number[]; done?: boolean },
): Promise<EngineScenario> {
  await using shop = new TaskRecorder()
  const observer = new CallRecorder()
  const flow = flowOf(plan, (name, event) => observer.hear(name, event))
  observer.watch(flow)
  for (let run = 0; run < 500; run += 1) {
    const log = await shop.acquire(flow)
    if (['SUCCESS', 'REVERTED', 'FAILURE'].includes(log.flow.state))
      return { detail: log.flow, observer, writes: shop.writes.length }
    const kill = options.kills?.[run] ?? Number.POSITIVE_INFINITY
    const dying = dyingAt(kill, log, { done: options.done ?? true })
    const engine = new Engine({ flow, log: dying, concurrency: options.concurrency })
    await engine.run().catch((error: unknown) => {
      if (!(error instanceof StorageFailure)) throw error
    })
    await engine.idle
  }
  throw new Error('it never ends')
}

/** What has to be the same: what never ran and what was undone are. */
function summarize({ state, atoms }: FlowDetail): unknown {
  const states = atoms.map((atom) => [atom.name, atom.state === 'PENDING' ? 'REVERTED' : atom.state, atom.result])
  return { state, atoms: states.sort() }
}

function assertAllowed({ detail, observer }: EngineScenario): void {
  expect(observer.objections).toEqual([])
  const surviving = detail.atoms.filter(({ state }) => state === 'SUCCESS').map(({ name }) => name)
  expect(observer.left.filter((name) => !surviving.includes(name))).toEqual([])
  expect(['SUCCESS', 'REVERTED']).toContain(detail.state)
  const allowed = detail.state === 'SUCCESS' ? ['SUCCESS'] : ['PENDING', 'REVERTED']
  expect(detail.atoms.filter(({ state }) => !allowed.includes(state))).toEqual([])
}

describe.each([1, 4])('with %i at once', (concurrency) => {
  test('tasks run and are reverted in an order that the graph allows, and nothing is left of what did not succeed', () =>
    fc.assert(
      fc.asyncProperty(plans, async (plan) => assertAllowed(await tell(plan, { concurrency }))),
      { numRuns: count({ test: 120, long: 10_000 }) },
    ))

  test('killed at any one transition and resumed, it ends as if it had not been killed', () =>
    fc.assert(
      fc.asyncProperty(plans, fc.boolean(), async (plan, done) => {
        const calm = await tell(plan, { concurrency })
        for (let kill = 1; kill <= calm.writes; kill += 1) {
          const shaken = await tell(plan, { concurrency, kills: [kill], done })
          assertAllowed(shaken)
          expect(summarize(shaken.detail)).toEqual(summarize(calm.detail))
        }
      }),
      RUNS,
    ))

  test('killed after every single transition, it ends as if it had not been killed', () =>
    fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const calm = await tell(plan, { concurrency })
        const shaken = await tell(plan, { concurrency, kills: Array.from({ length: 400 }, () => 1), done: true })
        assertAllowed(shaken)
        expect(summarize(shaken.detail)).toEqual(summarize(calm.detail))
      }),
      RUNS,
    ))
})
