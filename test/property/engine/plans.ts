/** Flows at random, whose tasks fail by plan: what a task does depends on its flow's attempt, not on who runs it. */
import fc from 'fast-check'
import {
  type AnyFlow,
  type AnyPart,
  type Depth,
  graph,
  input,
  type Link,
  linear,
  link,
  task,
  times,
  unordered,
} from '../../../src/flow/index.ts'

export type Plan = TaskPlan | FlowPlan

interface TaskPlan {
  readonly kind: 'task'
  /** In how many of its flow's attempts it fails, from the first on. */
  readonly fails: number
  readonly revert: boolean
}

interface FlowPlan {
  readonly kind: 'flow'
  readonly pattern: AnyFlow['pattern']
  /** 0 where it has no retry. */
  readonly attempts: number
  readonly revertAll: boolean
  readonly parts: readonly Plan[]
  /** Of a graph: for each part a number that says which of those before it it comes after. */
  readonly edges: readonly number[]
  /** Of a graph: for each part a decider on some of its edges, or on none. */
  readonly deciders: readonly DeciderPlan[]
}

interface DeciderPlan {
  readonly edges: number
  readonly says: boolean
  readonly depth: Depth
}

const taskPlan: fc.Arbitrary<TaskPlan> = fc.record({
  kind: fc.constant('task' as const),
  fails: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) }),
  revert: fc.boolean(),
})

const deciderPlan: fc.Arbitrary<DeciderPlan> = fc.record({
  edges: fc.nat(15),
  says: fc.boolean(),
  depth: fc.constantFrom('ALL' as const, 'FLOW' as const, 'NEIGHBORS' as const, 'ATOM' as const),
})

const plansWith = (deciders: fc.Arbitrary<readonly DeciderPlan[]>) =>
  fc.letrec<{ flow: FlowPlan; plan: Plan }>((tie) => ({
    plan: fc.oneof({ maxDepth: 3, withCrossShrink: true }, taskPlan, tie('flow')),
    flow: fc.record({
      kind: fc.constant('flow' as const),
      pattern: fc.constantFrom('linear' as const, 'unordered' as const, 'graph' as const),
      attempts: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3 })),
      revertAll: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
      parts: fc.array(tie('plan'), { minLength: 1, maxLength: 4 }),
      edges: fc.array(fc.nat(15), { minLength: 4, maxLength: 4 }),
      deciders,
    }),
  })).flow

export const plans: fc.Arbitrary<FlowPlan> = plansWith(fc.constant([]))
export const plansWithDeciders: fc.Arbitrary<FlowPlan> = plansWith(
  fc.array(deciderPlan, { minLength: 4, maxLength: 4 }),
)

export type Event = 'started' | 'done' | 'undone'
export type Note = (name: string, event: Event) => void

/** The flow of a plan; `note` hears what its tasks do. */
export function flowOf(plan: FlowPlan, note: Note): AnyFlow {
  let count = 0
  const part = (made: Plan, attempt: string | undefined): AnyPart => {
    count += 1
    return made.kind === 'task' ? taskOf(`t${count}`, made, { attempt, note }) : inner(made, `f${count}`, attempt)
  }
  const inner = (made: FlowPlan, name: string, around: string | undefined): AnyFlow => {
    const own = made.attempts > 0 ? `attempt of ${name}` : around
    const parts: AnyPart[] = made.parts.map((each) => part(each, own))
    const retry =
      made.attempts > 0 ? times(made.attempts, { provides: own ?? '', revertAll: made.revertAll }) : undefined
    if (made.pattern === 'linear') return linear({ name, retry }, input(), ...parts)
    if (made.pattern === 'unordered') return unordered({ name, retry }, input(), ...parts)
    const links = parts.flatMap((to, index) =>
      parts
        .slice(0, index)
        .flatMap((from, at) =>
          (made.edges[index] ?? 0) & (1 << at) ? [linkOf(from, to, { plan: made.deciders[index], at })] : [],
        ),
    )
    return graph({ name, retry, links }, input(), ...parts)
  }
  return inner(plan, 'f', undefined)
}

function linkOf(from: AnyPart, to: AnyPart, { plan, at }: { plan: DeciderPlan | undefined; at: number }): Link {
  if (!plan || (plan.edges & (1 << at)) === 0) return link(from, to)
  return link(from, to, { decider: () => plan.says, depth: plan.depth })
}

function taskOf(
  name: string,
  { fails, revert }: TaskPlan,
  { attempt, note }: { attempt: string | undefined; note: Note },
): AnyPart {
  return task(name, {
    requires: attempt === undefined ? [] : ['attempt'],
    rebind: (attempt === undefined ? {} : { attempt }) as never,
    provides: name,
    execute: (args: Record<string, unknown>) => {
      note(name, 'started')
      if (Number(args['attempt'] ?? 1) <= fails) throw new Error(`${name} fails`)
      note(name, 'done')
      return name
    },
    ...(revert ? { revert: () => note(name, 'undone') } : {}),
  })
}
