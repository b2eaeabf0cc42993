/** Shapes of jobs that depend on each other, for tests and benchmarks. */
import { v7 as newUuid } from 'uuid'

/** A job of a shape, with the jobs of the same shape after which it is run; these come before it. */
export interface ShapedJob {
  readonly uuid: string
  readonly after: readonly string[]
}

export type Shape = (jobs: number) => ShapedJob[]

/** The most jobs that one job collects: the limit of `after`. */
const COLLECTED = 1_000
const LAYER = 100
const PER_LAYERED_JOB = 3

const job = (after: readonly string[] = []): ShapedJob => ({ uuid: newUuid(), after })

function repeat(jobs: number, make: (index: number) => ShapedJob): ShapedJob[] {
  return Array.from({ length: jobs }, (_, index) => make(index))
}

function fanOut(jobs: number): ShapedJob[] {
  const first = job()
  return [first, ...repeat(jobs - 1, () => job([first.uuid]))]
}

/** One job after all others, by jobs in between that collect as many as is allowed. */
function fanIn(jobs: number): ShapedJob[] {
  const collectors = Math.ceil((jobs - 1) / (COLLECTED + 1))
  const parts = repeat(jobs - 1 - collectors, () => job())
  const collecting = repeat(collectors, (index) => {
    return job(parts.slice(index * COLLECTED, (index + 1) * COLLECTED).map(({ uuid }) => uuid))
  })
  return [...parts, ...collecting, job(collecting.map(({ uuid }) => uuid))]
}

/** Layers of a hundred jobs, each of which is run after three of the layer before. */
function layers(jobs: number): ShapedJob[] {
  const made: ShapedJob[] = []
  for (let index = 0; index < jobs; index += 1) {
    const before = made.slice(Math.max(0, (Math.floor(index / LAYER) - 1) * LAYER), Math.floor(index / LAYER) * LAYER)
    const after = Array.from({ length: PER_LAYERED_JOB }, (_, n) => before[(index * 7 + n * 31) % LAYER]?.uuid)
    made.push(job([...new Set(after)].filter((uuid) => uuid !== undefined)))
  }
  return made
}

function chain(jobs: number): ShapedJob[] {
  const made: ShapedJob[] = []
  for (let index = 0; index < jobs; index += 1) {
    const last = made.at(-1)
    made.push(job(last && [last.uuid]))
  }
  return made
}

export const SHAPES: Readonly<Record<'none' | 'fan-out' | 'fan-in' | 'layers' | 'chain', Shape>> = {
  none: (jobs) => repeat(jobs, () => job()),
  'fan-out': fanOut,
  'fan-in': fanIn,
  layers,
  chain,
}
