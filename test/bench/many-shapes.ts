/**
 * What dependencies cost: jobs in some shapes, posted and done, beside as many jobs that depend on none. In a chain only one job can run at a
 * time: it is compared with jobs that one slot does.
 */
import { join } from 'node:path'
import { openBoard } from 'jobboard'
import { ROOT } from '../support/build.ts'
import { SHAPES } from '../support/shapes.ts'
import { times } from './brief.ts'
import type { Goal } from './goals.ts'
import { startPart } from './part.ts'
import { median, spread } from './spread.ts'

const CHILD = join(ROOT, 'test/bench/many-child.ts')
const JOBS = times(10_000, 500)
const CHAIN = times(2_000, 200)
const ROUNDS = times(3, 1)
const SLOTS = 128

/** A board whose shapes are measured. */
export interface ShapedBoard {
  readonly what: string
  uriOf(name: string): string
  /** Returns how many transactions the server has done; undefined where it does not count them. */
  transactions?(): Promise<number>
}

interface Case {
  readonly shape: keyof typeof SHAPES
  readonly jobs: number
  readonly slots: number
}

const PLAIN: Case = { shape: 'none', jobs: JOBS, slots: SLOTS }
const PLAIN_IN_A_ROW: Case = { shape: 'none', jobs: CHAIN, slots: 1 }
const CASES: readonly (Case & { readonly beside?: Case })[] = [
  PLAIN,
  { ...PLAIN, shape: 'fan-out', beside: PLAIN },
  { ...PLAIN, shape: 'fan-in', beside: PLAIN },
  { ...PLAIN, shape: 'layers', beside: PLAIN },
  PLAIN_IN_A_ROW,
  { ...PLAIN_IN_A_ROW, shape: 'chain', beside: PLAIN_IN_A_ROW },
]

interface Figures {
  readonly ms: number
  readonly transactions: number | undefined
}

/** Prints the figures of each shape on a board, and returns the goals. */
export async function measureShapes(board: ShapedBoard): Promise<Goal[]> {
  const figures = new Map<Case, Figures[]>(CASES.map((each) => [each, []]))
  let round = 0
  for (; round < ROUNDS; round += 1)
    for (const [index, each] of CASES.entries()) figures.get(each)?.push(await run(each, board, `${index}-${round}`))
  console.log(
    `\nshapes on ${board.what}, from the post of the first to the end of the last; the median of ${ROUNDS} rounds (range)`,
  )
  const goals: Goal[] = []
  for (const each of CASES) {
    const of = (one: Case) => (figures.get(one) ?? []).map(({ ms }) => ms)
    const ratios = of(each).map((ms, index) => ms / (each.beside ? (of(each.beside)[index] ?? Number.NaN) : ms))
    const counted = (figures.get(each) ?? []).map(({ transactions = Number.NaN }) => transactions / each.jobs)
    const perSecond = of(each).map((ms) => (each.jobs * 1_000) / ms)
    const shown = Number.isNaN(median(counted)) ? '' : `, ${median(counted).toFixed(2)} transactions a job`
    const label = `${each.shape}${each.slots === 1 ? ', one at a time' : ''}`
    console.log(`  ${label.padEnd(22)} ${spread(perSecond, 0)} jobs/s${shown}, ${spread(ratios, 2)} ×`)
    if (each.beside) {
      const what = `${each.jobs} jobs, ${each.shape}, on ${board.what}: time, times the same jobs without dependencies`
      goals.push({ what, value: median(ratios), goal: { atMost: 2 } })
    }
  }
  return goals
}

async function run({ shape, jobs, slots }: Case, place: ShapedBoard, name: string): Promise<Figures> {
  const uri = place.uriOf(`shape-${name}`)
  await using board = await openBoard(uri)
  await using worker = await startWorker(uri, { jobs, slots, board })
  const items = SHAPES[shape](jobs).map(({ uuid, after }) => ({ flow: 'job', store: { n: 1 }, uuid, after }))
  const before = await place.transactions?.()
  const begin = performance.now()
  const working = worker.go()
  const refused = (await board.postMany(items)).find((result) => 'error' in result)
  if (refused) throw new Error(`${shape} on ${place.what}: a job was not posted`, { cause: refused })
  const { at } = await working

  const after = await place.transactions?.()
  return { ms: at - begin, transactions: before === undefined || after === undefined ? undefined : after - before }
}

/** Starts a worker, which does a first job before it says that it is ready. */
async function startWorker(
  uri: string,
  {
    jobs,
    slots,
    board,
  }: {
    readonly jobs: number
    readonly slots: number
    readonly board: { post(flow: string, store: object): Promise<unknown> }
  },
): Promise<Awaited<ReturnType<typeof startPart>>> {
  await board.post('job', { n: 0 })
  return startPart(CHILD, [String(jobs), String(slots), uri])
}
