/** What can happen to an ensemble and its clients, by chance and one after the other. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ZooKeeper } from '../../../src/zookeeper/index.ts'
import type { Ensemble, EnsembleServer } from '../../support/ensemble.ts'
import { expireSession } from '../../support/expire-session.ts'
import type { ProxyMode } from '../../support/proxy.ts'
import type { Random } from '../../support/random.ts'

export interface FaultTargets {
  readonly ensemble: Ensemble
  readonly clients: readonly ZooKeeper[]
  readonly random: Random
}

/** Something that happens, and is over when the promise resolves. */
type Fault = (setup: FaultTargets, server: EnsembleServer) => Promise<void>

const SHORT = [20, 400] as const
const LONG = [300, 2_500] as const

/** For a while, the length of which is a part of the chance and not waited for by anybody. */
function randomPause({ random }: FaultTargets, [least, most]: readonly [number, number]): Promise<void> {
  return sleep(random.between(least, most))
}

function during(mode: ProxyMode, length: readonly [number, number]): Fault {
  return async (setup, { proxy }) => {
    proxy.mode = mode
    if (mode === 'refuse') proxy.resetAll()
    await randomPause(setup, length)
    proxy.mode = 'pass'
    proxy.resetAll()
  }
}

const FAULTS = {
  'a connection is reset': async (_, { proxy }) => proxy.resetAll(),
  'all connections are reset': async ({ ensemble }) => {
    for (const { proxy } of ensemble.servers) proxy.resetAll()
  },
  'a frame of a client is cut': async ({ random }, { proxy }) => {
    void proxy.cutAfter(random.between(0, 2_000), { from: 'client' })
  },
  'a frame of a server is cut': async ({ random }, { proxy }) => {
    void proxy.cutAfter(random.between(0, 2_000), { from: 'server' })
  },
  'nothing gets through': during('blackhole', LONG),
  'nothing gets to a server': during('drop-requests', LONG),
  'nothing comes back': during('swallow-replies', SHORT),
  'a server cannot be reached': during('refuse', LONG),
  'bytes come in pieces': async (setup, { proxy }) => {
    proxy.manner = { pieces: () => setup.random.between(1, 60) }
    await randomPause(setup, SHORT)
    proxy.manner = {}
  },
  'bytes come late': async (setup, { proxy }) => {
    proxy.manner = { delay: setup.random.between(1, 30) }
    await randomPause(setup, SHORT)
    proxy.manner = {}
  },
  'a session is ended': async ({ ensemble, clients, random }) => {
    const { session } = random.pick(clients)
    // Where no server can say so by now, that is no fault of the client's.
    if (session) await expireSession(ensemble.hosts, session.id).catch(() => undefined)
  },
  'a server is killed': async (setup, server) => {
    await server.kill()
    await randomPause(setup, SHORT)
    await server.restart()
  },
  'a server is stopped': async (setup, server) => {
    await server.pause()
    await randomPause(setup, LONG)
    await server.resume()
  },
  'a server is cut off from the others': async (setup, server) => {
    setup.ensemble.links.isolate(server)
    await randomPause(setup, LONG)
    setup.ensemble.links.heal()
  },
} as const satisfies Record<string, Fault>

const NAMES = Object.keys(FAULTS) as (keyof typeof FAULTS)[]

/** One fault after the other until the time is over; then everything is well again. */
export async function injectFaults(setup: FaultTargets, options: { readonly milliseconds: number }): Promise<string[]> {
  const { ensemble, random } = setup
  const happened: string[] = []
  const until = performance.now() + options.milliseconds
  while (performance.now() < until) {
    const server = random.pick(ensemble.servers)
    const fault = random.pick(NAMES)
    happened.push(`${fault} (${server.id})`)
    await FAULTS[fault](setup, server)
    await randomPause(setup, SHORT)
  }
  for (const { proxy } of ensemble.servers) proxy.stopCutting()
  return happened
}
