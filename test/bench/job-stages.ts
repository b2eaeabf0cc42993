/**
 * Divides what a process spends among the stages of a job. The samples of a profile have stacks of functions; the program is one file, in which esbuild
 * names the source of each part, so a function's line tells its module. A sample counts for the innermost module of its stack that has a stage. The
 * codec has no stage, so its time counts for its caller.
 */
import { readFile } from 'node:fs/promises'
import type { Session } from 'node:inspector/promises'

/** The stages of a job, in order; then `driver` (drivers, and all other JavaScript without a stage), `garbage` (the collector) and `rest` (what V8 does outside of any stage). */
export const STAGES = [
  'post',
  'notice',
  'read',
  'choose',
  'claim',
  'settle',
  'history',
  'commit',
  'driver',
  'garbage',
  'rest',
] as const
export type Stage = (typeof STAGES)[number]

/** What each stage has taken: microseconds, or bytes. */
export type Ledger = Readonly<Record<Stage, number>>

/** The patterns of the paths of modules, with their stages. The first pattern that matches decides. */
const STAGE_PATTERNS: readonly (readonly [RegExp, Stage])[] = [
  [/\/history\.ts|history-journal|ended-job/, 'history'],
  [
    /api\/posting|\/model\/(posting|declared|entry|post-batch)\.ts|post-calls|posting-parts|dependency-resolver/,
    'post',
  ],
  [/\/view\/content-reader|\/store\/(reader|reads|content)/, 'read'],
  [/\/view\/|\/changes\.ts|\/feed\.ts|\/watch|\/events\//, 'notice'],
  [/\/queue\/|claims\/(choosing|candidates|claimer|waiting)|safe-accept/, 'choose'],
  [/claims\/(settling|claim|held-claims)\.ts|job-ending/, 'settle'],
  [/\/claims\/|claim-calls|\/backends\/\w+\/claims\.ts|\/limits\//, 'claim'],
  [/\/commit\/|group-commit|function-caller/, 'commit'],
  [/\/backends\/\w+\/jobs\.ts/, 'read'],
  [/^src\/(zookeeper|postgres|sqlite)\/|connection/, 'driver'],
]

interface CallFrame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
}

/** A module in the file of the program: its first line, from 0, and its path. */
interface Module {
  readonly line: number
  readonly path: string
}

/** A finder of the stages of functions. */
export class StageFinder {
  readonly #file: string
  readonly #modules: readonly Module[]

  private constructor(file: string, modules: readonly Module[]) {
    this.#file = file
    this.#modules = modules
  }

  /** Reads which lines of a program belong to which module. @param file a program that esbuild has bundled */
  static async of(file: string): Promise<StageFinder> {
    const lines = (await readFile(file, 'utf8')).split('\n')
    const modules = lines.flatMap((text, line) => {
      const [, path] = /^\/\/ ((?:src|test|node_modules)\/.*)$/.exec(text) ?? []
      return path === undefined ? [] : [{ line, path }]
    })
    return new StageFinder(file, modules)
  }

  /** Returns the function's name with the path of its module. */
  nameOf({ functionName, url, lineNumber }: CallFrame): string {
    const path = url.endsWith(this.#file) ? this.#pathOf(lineNumber) : url || 'V8'
    return `${functionName || '(anonymous)'} ${path}`
  }

  /** Returns the stage of a function; undefined if it has the stage of its caller. */
  stageOf({ functionName, url, lineNumber }: CallFrame): Stage | undefined {
    if (functionName === '(garbage collector)') return 'garbage'
    if (!url.endsWith(this.#file)) return undefined
    const path = this.#pathOf(lineNumber)
    return STAGE_PATTERNS.find(([pattern]) => pattern.test(path))?.[1]
  }

  #pathOf(line: number): string {
    let [from, to] = [0, this.#modules.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#modules[middle]?.line ?? 0) <= line) from = middle + 1
      else to = middle
    }
    return this.#modules[from - 1]?.path ?? ''
  }
}

/** The sums of what each stage has taken. */
export class StageSums {
  readonly #finder: StageFinder
  readonly byStage: Record<Stage, number> = Object.fromEntries(STAGES.map((stage) => [stage, 0])) as Record<
    Stage,
    number
  >

  constructor(finder: StageFinder) {
    this.#finder = finder
  }

  /** Adds what a function has taken itself; returns the stage for the functions that it calls. */
  add(frame: CallFrame, self: number, caller: Stage | undefined): Stage | undefined {
    const inner = this.#finder.stageOf(frame) ?? caller
    this.byStage[inner ?? (frame.url === '' ? 'rest' : 'driver')] += self
    return inner
  }
}

/** Does the work while the inspector samples the processor; returns the microseconds of each stage. */
export async function cpuLedger(session: Session, finder: StageFinder, work: () => Promise<unknown>): Promise<Ledger> {
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: 200 })
  await session.post('Profiler.start')
  await work()
  const { profile } = await session.post('Profiler.stop')
  const taken = new Map<number, number>()
  for (const [index, id] of (profile.samples ?? []).entries())
    taken.set(id, (taken.get(id) ?? 0) + (profile.timeDeltas?.[index] ?? 0))
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const sums = new StageSums(finder)
  const visit = (id: number, caller: Stage | undefined): void => {
    const node = nodes.get(id)
    if (!node || node.callFrame.functionName === '(idle)') return
    const stage = sums.add(node.callFrame, taken.get(id) ?? 0, caller)
    for (const child of node.children ?? []) visit(child, stage)
  }
  const [root] = profile.nodes
  if (root) visit(root.id, undefined)
  return sums.byStage
}

/** The bytes between two samples of the heap, on average. */
const SAMPLING_BYTES = 4_096

/** The allocations of all functions that have one name in one module: of constructors, and of literals and closures in functions. */
export interface Allocator {
  /** The name with the path of the module; its URL outside of the program, and `V8` for native code. */
  readonly name: string
  /** The bytes that these functions have allocated themselves, without the functions that they call. */
  readonly bytes: number
}

const MAX_ALLOCATORS = 12

/**
 * Does the work while the inspector samples allocations; returns the bytes that each stage has allocated, including bytes that were freed again, and the
 * functions that have allocated most.
 */
export async function heapLedger(
  session: Session,
  finder: StageFinder,
  work: () => Promise<unknown>,
): Promise<{ ledger: Ledger; allocators: Allocator[] }> {
  await session.post('HeapProfiler.enable')
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: SAMPLING_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  })
  await work()
  const { profile } = await session.post('HeapProfiler.stopSampling')
  const sums = new StageSums(finder)
  const byName = new Map<string, number>()
  const visit = (node: typeof profile.head, caller: Stage | undefined): void => {
    const stage = sums.add(node.callFrame, node.selfSize, caller)
    const name = finder.nameOf(node.callFrame)
    byName.set(name, (byName.get(name) ?? 0) + node.selfSize)
    for (const child of node.children) visit(child, stage)
  }
  visit(profile.head, undefined)
  const most = [...byName].sort(([, one], [, other]) => other - one).slice(0, MAX_ALLOCATORS)
  return { ledger: sums.byStage, allocators: most.map(([name, bytes]) => ({ name, bytes })) }
}
