import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ZooKeeper } from '../../../src/zookeeper/index.ts'
import { count } from '../../support/counts.ts'
import { type Ensemble, startEnsemble } from '../../support/ensemble.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { randomly } from '../../support/random.ts'
import { type OutcomeCounts, WriteLog } from './diary.ts'
import { caughtUp, watchTree } from './mirror.ts'
import { injectFaults } from './weather.ts'

const WHOLE_TIME = count({ test: 4_000, long: 600_000 })
/** So much has to have been done for the storms to have shown anything. */
const LEAST = count({ test: 100, long: 100_000 })
/** Then everything is compared, and it begins anew. */
const ONE_STORM = 15_000
const CLIENTS = 3
const WIDTH = 8
/** Milliseconds in which servers that are all well have found a leader and answered whoever asks. */
const RECOVERY = 30_000

describe.skipIf(!zookeeperHosts)('whatever happens', () => {
  let ensemble: Ensemble
  beforeAll(async () => {
    ensemble = await startEnsemble({ links: true })
  })
  afterAll(() => ensemble?.stop())

  test('everything that was asked is settled, and what is said to be done is done', async () => {
    const until = performance.now() + WHOLE_TIME
    const random = randomly()
    const total: OutcomeCounts = { done: 0, refused: 0, 'not-sent': 0, unknown: 0 }
    let stuck = 0
    let diverged = 0
    // A storm may begin with a server that is stopped for all of its time: then there is another one.
    for (let seed = random.seed; performance.now() < until || total.done < LEAST; seed = random.between(1, 2 ** 31)) {
      const left = Math.max(1_000, until - performance.now())
      const storm = await runFaults(ensemble, { seed, milliseconds: Math.min(ONE_STORM, left) })
      for (const outcome of Object.keys(total) as (keyof OutcomeCounts)[]) total[outcome] += storm.tally[outcome]
      if (storm.stuck) stuck += 1
      if (storm.diverged) diverged += 1
      // A server that has lost its leader keeps a thread that writes its log, beside that of its next life in the same
      // process (ZOOKEEPER-4712, mended in 3.9.3): every storm begins with new processes.
      if (performance.now() < until) await ensemble.restart()
    }
    console.log(
      `random faults: ${JSON.stringify(total)}; ${stuck} times the servers were stuck until they were started anew, ` +
        `${diverged} times they did not agree with each other`,
    )
    expect(total.done).toBeGreaterThanOrEqual(LEAST)
  })
})

interface FaultRun {
  readonly tally: OutcomeCounts
  /** Whether the servers, all of them well, had to be started anew before they answered. */
  readonly stuck: boolean
  /**
   * Whether a difference was found, and the servers had different znodes: ZooKeeper 3.8.0 may keep transactions on one server that
   * the others have not committed (ZOOKEEPER-4785 and others). Which of them a client has seen is no fault of the client.
   */
  readonly diverged: boolean
}

async function runFaults(ensemble: Ensemble, options: { seed: number; milliseconds: number }): Promise<FaultRun> {
  const random = randomly(options.seed)
  const path = namespace('storm')
  await using observer = new ZooKeeper({ hosts: ensemble.servers.map(({ hosts }) => hosts).join() })
  await observer.connect({ timeout: '30s' })
  await observer.create(path)
  const clients = Array.from(
    { length: CLIENTS },
    () => new ZooKeeper({ hosts: ensemble.hosts, sessionTimeout: '4s', connectTimeout: '400ms' }),
  )
  const stop = new AbortController()
  let happened: string[] = []
  try {
    await Promise.all(clients.map((client) => client.connect({ timeout: '30s' })))
    const folders = clients.map((_, at) => `${path}/client-${at}`)
    await Promise.all(folders.map((folder) => observer.create(folder)))
    const [first = observer] = clients
    const copy = await watchTree(first, path, folders)
    const diaries = clients.map((client, at) => new WriteLog(client, folders[at] ?? ''))
    const writing = Promise.all(diaries.map((diary) => diary.write(WIDTH, stop.signal)))
    happened = await injectFaults({ ensemble, clients, random }, options)
    stop.abort()
    const stuck = !(await answeredInTime(writing.then(() => allCaughtUp(clients, folders))))
    if (stuck) {
      happened.push('the servers, all of them well, answered nobody, and were started anew')
      await ensemble.restart()
      await writing
      await allCaughtUp(clients, folders)
    }
    const contradictions = await Promise.all(diaries.map((diary) => diary.contradictions(observer)))
    const wrong = contradictions.flat()
    const { missing, surplus, story } = await copy.differences(observer)
    const pathOf = (line: string) => line.slice(0, line.indexOf(':'))
    const paths = [...wrong.map(pathOf), ...missing, ...surplus]
    const servers = await perServer(ensemble, paths)
    // Servers that disagree explain a difference at a path only where they differ at that path.
    const unexplained = paths.filter((_, at) => new Set(servers.map((found) => found[at])).size === 1)
    const seen = servers.map((found) => found.join(', ')).join('\n')
    expect(unexplained, `${[...wrong, story].join('\n')}\n${seen}`).toEqual([])
    const diverged = paths.length > 0
    if (diverged) console.log(`the servers do not agree, seed ${options.seed}, at ${paths.join(', ')}:\n${seen}`)
    return { tally: diaries.map(({ tally }) => tally).reduce(sum), stuck, diverged }
  } catch (error) {
    const again = `JOBBOARD_SEED=${options.seed} repeats it`
    throw new Error(`random faults, ${again}. What happened:\n${happened.join('\n')}`, { cause: error })
  } finally {
    stop.abort()
    await Promise.all(clients.map((client) => client.close()))
    await observer.deleteRecursive(path).catch(() => undefined)
  }
}

async function allCaughtUp(clients: readonly ZooKeeper[], folders: readonly string[]): Promise<void> {
  await Promise.all(clients.map((client, at) => caughtUp(client, folders[at] ?? '/')))
}

async function answeredInTime(answered: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), RECOVERY)
  })
  try {
    return await Promise.race([answered.then(() => true as const), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns what each server has at these paths: it shows whether a client was wrong, or servers do not agree with each other. */
async function perServer(ensemble: Ensemble, paths: readonly string[]): Promise<string[][]> {
  return Promise.all(
    ensemble.servers.map(async ({ hosts }) => {
      await using client = new ZooKeeper({ hosts })
      await client.connect({ timeout: '30s' })
      await client.sync('/')
      const stats = await Promise.all(paths.map((path) => client.exists(path)))
      // The version counts the writes that were applied: it tells a write that was lost from one that was applied late.
      return stats.map((stat) =>
        stat ? `0x${stat.czxid.toString(16)} version ${stat.version} of 0x${stat.mzxid.toString(16)}` : 'nothing',
      )
    }),
  )
}

function sum(one: OutcomeCounts, other: OutcomeCounts): OutcomeCounts {
  return {
    done: one.done + other.done,
    refused: one.refused + other.refused,
    'not-sent': one['not-sent'] + other['not-sent'],
    unknown: one.unknown + other.unknown,
  }
}
