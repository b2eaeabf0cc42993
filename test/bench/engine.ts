/**
 * Atoms per second of engines with logbooks in memory, serial and parallel; and beside them, in the same run, the same
 * flows on TaskFlow's serial engine with its memory backend, which is installed from Debian's packages.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
// As it is published: what makes TypeScript run as it is costs more than a small task does.
import {
  type AnyFlow,
  type AnyTask,
  Engine,
  graph,
  input,
  linear,
  link,
  openPersistence,
  type Persistence,
  task,
  unordered,
} from 'jobboard'
import { ROOT } from '../support/build.ts'
import { PYTHON, provideTaskFlow } from '../support/taskflow.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { printRates, type Rate } from './rates.ts'

interface Shape {
  readonly name: string
  readonly atoms: number
  /** Runs of the flow, and TaskFlow's, which would take all night. */
  readonly runs: number
  readonly theirRuns: number
  readonly flow: AnyFlow
}

/** Each node comes after up to three before it, the same ones in both languages. */
function edgesOf(count: number): [number, number][] {
  let seed = 7
  const next = (below: number) => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed % below
  }
  return Array.from({ length: count }, (_, to) => to).flatMap((to) =>
    to === 0 ? [] : [...new Set([next(to), next(to), next(to)])].map((from): [number, number] => [from, to]),
  )
}

function tasksOf(count: number): AnyTask[] {
  return Array.from({ length: count }, (_, index) =>
    task(`t${index}`, { execute: () => index, revert: () => undefined }),
  )
}

function graphOf(count: number): AnyFlow {
  const tasks = tasksOf(count)
  const links = edgesOf(count).flatMap(([from, to]) => {
    const [before, after] = [tasks[from], tasks[to]]
    return before && after ? [link(before, after)] : []
  })
  return graph({ name: 'graph', links }, input(), ...tasks)
}

const GRAPH = times(10_000, 500)

const SHAPES: readonly Shape[] = [
  {
    name: 'linear',
    atoms: 10,
    runs: times(2_000, 50),
    theirRuns: times(50, 5),
    flow: linear('linear', input(), ...tasksOf(10)),
  },
  {
    name: 'unordered',
    atoms: 1_000,
    runs: times(20, 2),
    theirRuns: 1,
    flow: unordered('unordered', input(), ...tasksOf(1_000)),
  },
  { name: 'graph', atoms: GRAPH, runs: times(3, 1), theirRuns: 1, flow: graphOf(GRAPH) },
]

/** A graph of theirs that is not done by then is reported as what it did at most. */
const THEIR_TIME = times(60_000, 15_000)
/** So many times TaskFlow's serial engine. */
const GOAL_TIMES = 50

export default async function bench(): Promise<void> {
  await using persistence = await openPersistence('memory:')
  const installed = await provideTaskFlow()
  const goals: Goal[] = []
  for (const shape of SHAPES) {
    const rates: Rate[] = []
    const taskflow = installed ? await theirs(shape) : undefined
    if (taskflow) rates.push(taskflow)
    await ours(shape, { persistence, concurrency: 1, runs: Math.max(1, shape.runs / 10) })
    const engines = [
      { what: 'serial', perSecond: await ours(shape, { persistence, concurrency: 1 }) },
      { what: 'parallel, 16 at once', perSecond: await ours(shape, { persistence, concurrency: 16 }) },
    ]
    rates.push(...engines)
    const title = `atoms of a ${shape.name} flow of ${shape.atoms.toLocaleString('en')}`
    printRates(title, rates)
    for (const { what, perSecond } of engines) {
      const value = taskflow && perSecond / taskflow.perSecond
      goals.push({ what: `${title}, ${what}, times TaskFlow:`, value, goal: { atLeast: GOAL_TIMES } })
    }
  }
  printGoals(goals)
}

async function ours(
  { flow, atoms, runs }: Shape,
  options: { persistence: Persistence; concurrency: number; runs?: number },
): Promise<number> {
  const { persistence, concurrency } = options
  const times = Math.ceil(options.runs ?? runs)
  const begin = performance.now()
  for (let run = 0; run < times; run += 1) {
    const uuid = randomUUID()
    const { name, version } = flow
    const log = await persistence.acquire({ book: { uuid, name }, flow: { uuid, name, version }, run: 1, claim: uuid })
    const { state } = await new Engine({ flow, log, concurrency }).run()
    if (state !== 'SUCCESS') throw new Error(`it ended as ${state}`)
    await persistence.destroyBook(uuid)
  }
  return (times * atoms * 1_000) / (performance.now() - begin)
}

async function theirs({ name, atoms, theirRuns }: Shape): Promise<Rate> {
  const script = join(ROOT, 'test/bench/engine-taskflow.py')
  const edges = JSON.stringify(name === 'graph' ? edgesOf(atoms) : [])
  const child = spawn(PYTHON, [script, name, String(atoms), String(theirRuns)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), THEIR_TIME)
  child.stdin.end(edges)
  for await (const line of createInterface({ input: child.stdout })) {
    clearTimeout(timer)
    return { what: 'TaskFlow, serial', perSecond: Number(line) }
  }
  const note = `not done in ${THEIR_TIME / 1_000} s`
  return { what: 'TaskFlow, serial, at most', perSecond: (atoms * 1_000) / THEIR_TIME, note }
}
