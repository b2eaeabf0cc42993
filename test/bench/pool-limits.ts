/**
 * How soon isolated tasks begin and end, and what the conductor feels of them: the starts of children, the time from a cancel
 * to the death of a child that computes for ever, and the lag of the conductor's event loop while eight children compute.
 */
import { cpus } from 'node:os'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import type { Goal } from './goals.ts'
import type { Watched } from './pool-child.ts'
import { GRACE_MS } from './pool-flows.ts'
import { startPoolPart } from './pool-part.ts'
import { spread } from './spread.ts'

const CANCELS = times(20, 3)
const COLD_STARTS = times(20, 3)
const WARM_STARTS = times(1_000, 50)
/** Each computes for about a second. */
const COMPUTATIONS = times(32, 8)
const COMPUTING_CHILDREN = 8
/** The session of the board while children compute: far shorter than they compute. */
const SESSION = '4s'
const MAX_LAG_MS = 20
/** The time that a child which computes for ever may live on after its grace. */
const DEATH_MS = 200

export async function measureLimits(): Promise<Goal[]> {
  await measureStarts()
  return [await measureCancels(), ...(await measureLag())]
}

/** Runs one role of `pool-child.ts` in a process of its own, and returns what it says. */
async function run(role: string, options: Parameters<typeof startPoolPart>[1]): Promise<unknown> {
  await using part = await startPoolPart(role, options)
  return (await part.go()).said
}

async function measureStarts(): Promise<void> {
  const cold = { board: 'memory:', children: 1, flow: 'fresh', count: COLD_STARTS, warmUp: 1 }
  const warm = { board: 'memory:', children: 2, count: WARM_STARTS, warmUp: times(300, 20) }
  const lines = [
    { what: `a child, until it is ready, ${COLD_STARTS} times`, took: await run('cold', cold), digits: 0 },
    {
      what: `a task, in an idle child, ${WARM_STARTS} times`,
      took: await run('begin', { ...warm, flow: 'beginning' }),
    },
    { what: 'a task, without isolation', took: await run('begin', { ...warm, flow: 'beginning here' }) },
  ]
  console.log(
    '\nmilliseconds that starts take; the median (range). A task: from the end of the task before it in its flow',
  )
  for (const { what, took, digits = 2 } of lines)
    console.log(`  ${what.padEnd(48)} ${spread(took as number[], digits)} ms`)
}

async function measureCancels(): Promise<Goal> {
  const options = { board: 'memory:', children: 2, flow: 'spinning', count: CANCELS, warmUp: 0 }
  const took = (await run('cancel', options)) as number[]
  console.log(`\nfrom the cancel of a task that computes for ever until its child has died, grace ${GRACE_MS} ms`)
  console.log(`  ${`${CANCELS} times; the median (range)`.padEnd(48)} ${spread(took, 0)} ms`)
  const what = 'from the cancel to the death of the child, the most, in ms:'
  return { what, value: Math.max(...took), goal: { atMost: GRACE_MS + DEATH_MS } }
}

async function measureLag(): Promise<Goal[]> {
  await using zookeeper = await startBenchServer()
  const board = (name: string) => `zookeeper://${zookeeper.hosts}/${name}?sessionTimeout=${SESSION}`
  const options = { count: COMPUTATIONS, warmUp: 0 }
  const isolated = { ...options, children: COMPUTING_CHILDREN, flow: 'computing' }
  const runs = {
    [`${COMPUTING_CHILDREN} children`]: (await run('compute', { ...isolated, board: board('eight') })) as Watched,
    'one child': (await run('compute', {
      ...{ ...isolated, count: COMPUTATIONS / 4, children: 1, board: board('one') },
    })) as Watched,
    'without isolation': (await run('compute', {
      ...{ ...options, count: COMPUTATIONS / 4, children: 1, flow: 'computing here', board: board('here') },
    })) as Watched,
  }
  console.log(
    `\na conductor on ZooKeeper with a session of ${SESSION} while tasks compute, ${cpus().length} processors`,
  )
  for (const [what, watched] of Object.entries(runs)) console.log(`  ${what.padEnd(20)} ${describe(watched)}`)
  const [eight] = Object.values(runs)
  return [
    {
      what: 'lag of the event loop while eight children compute, p99, in ms:',
      value: eight?.lagP99Ms,
      goal: { atMost: MAX_LAG_MS },
    },
    { what: 'sessions lost while eight children compute:', value: eight?.lost, goal: { atMost: 0 } },
    {
      what: 'processor time that eight children use, of what other processes leave:',
      value: eight && eight.childrenMs / (eight.childrenMs + eight.ownMs + eight.idleMs),
      goal: { atLeast: 0.9 },
    },
  ]
}

function describe({ tookMs, childrenMs, ownMs, idleMs, lagP99Ms, lagMaxMs, lost, blocked }: Watched): string {
  const busy = (used: number) => (used / tookMs).toFixed(2)
  return [
    `${(tookMs / 1_000).toFixed(1)} s`,
    `processors busy with children ${busy(childrenMs)}, with the conductor ${busy(ownMs)}, idle ${busy(idleMs)}`,
    `lag p99 ${lagP99Ms.toFixed(1)} ms, most ${lagMaxMs.toFixed(1)} ms`,
    `sessions lost ${lost}`,
    `eventLoopBlocked ${blocked} times`,
  ].join('; ')
}
