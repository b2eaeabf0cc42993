/**
 * Our ZooKeeper client beside the two that Node has: the `zookeeper` package (the official C client) and
 * node-zookeeper-client. One server, which fsyncs; each client in a process of its own, in turn, several rounds.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ZooKeeper } from '../../src/zookeeper/index.ts'
import { ROOT } from '../support/build.ts'
import { compiled } from '../support/compiled.ts'
import { nativePackage } from '../support/native-package.ts'
import { ensureInstalled } from '../support/npm-folder.ts'
import { startZooKeeper } from '../support/zookeeper.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { PEERS } from './peers-folder.ts'
import { printRates } from './rates.ts'
import { CLIENTS, type ClientName, MULTI, type Rates, WIDTH } from './zookeeper-clients.ts'

const ROUNDS = times(6, 1)
const CHILD = join(ROOT, 'test/bench/zookeeper-child.ts')
const NAMES = Object.keys(CLIENTS) as ClientName[]

const KINDS = {
  creates: { what: `creates of 100 bytes, ${WIDTH} in flight`, goal: 1.2 },
  reads: { what: `reads of 100 bytes, ${WIDTH} in flight`, goal: 1.2 },
  multis: { what: `creates in multis of ${MULTI}, 10 in flight; one by one where there is no multi`, goal: 5 },
} as const satisfies Record<keyof Rates, { what: string; goal: number }>

export default async function zookeeper(): Promise<void> {
  await ensureInstalled(PEERS, { because: 'the benchmark compares with node-zookeeper-client' })
  await nativePackage()
  await using server = await startZooKeeper({ config: { forceSync: 'yes' } })
  const measured: Record<ClientName, Rates[]> = { ours: [], native: [], 'node-zookeeper-client': [] }
  for (let round = 0; round < ROUNDS; round++) {
    // Each goes first as often as the others: what came before is still felt by the server.
    const turn = round % NAMES.length
    for (const name of [...NAMES.slice(turn), ...NAMES.slice(0, turn)]) {
      measured[name].push(await measure(name, server.hosts))
    }
  }
  printGoals((Object.keys(KINDS) as (keyof Rates)[]).map((kind) => print(kind, measured)))
}

/** In a tree of its own, deleted afterwards: the server's heap is small, and the next one is to find it as empty. */
async function measure(name: ClientName, hosts: string): Promise<Rates> {
  await using keeper = new ZooKeeper({ hosts })
  await keeper.connect()
  const { path } = await keeper.create('/bench-', Buffer.alloc(0), { sequential: true })
  const args = [await compiled(CHILD, { bare: true }), name, hosts, path]
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT })
  await keeper.deleteRecursive(path)
  return JSON.parse(stdout) as Rates
}

/** Prints the figures of one kind of operation; returns what they come to. */
function print(kind: keyof Rates, measured: Readonly<Record<ClientName, readonly Rates[]>>): Goal {
  const { what, goal } = KINDS[kind]
  const rates = NAMES.map((name) => {
    const figures = measured[name].map((round) => round[kind] ?? round.creates)
    const cpu = median(figures.map((each) => each.cpu))
    return {
      what: CLIENTS[name],
      perSecond: median(figures.map((each) => each.perSecond)),
      note: `${cpu.toFixed(1).padStart(6)} µs of processor time each`,
    }
  })
  printRates(`${what}; median of ${ROUNDS} rounds`, rates)
  // A multi is worth what it saves: it is held against what the peers do one by one.
  const against = kind === 'multis' ? 'creates' : kind
  const peers = NAMES.filter((name) => name !== 'ours')
  const faster = Math.max(...peers.map((name) => median(measured[name].map((each) => each[against].perSecond))))
  const peer = kind === 'multis' ? 'the faster peer one by one' : 'the faster peer'
  return {
    what: `${what}, times ${peer}:`,
    value: (rates[0]?.perSecond ?? Number.NaN) / faster,
    goal: { atLeast: goal },
  }
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor((figures.length - 1) / 2)] ?? Number.NaN
}
