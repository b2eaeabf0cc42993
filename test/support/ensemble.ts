/**
 * An ensemble of ZooKeeper servers on loopback, in about a second and a half: with a proxy in front of each server, for
 * its clients, and where asked with proxies between the servers, so that they can be cut off from each other.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { provide, type Way } from './install.ts'
import { Links } from './links.ts'
import { freePort } from './ports.ts'
import { startProxy, type TcpProxy } from './proxy.ts'
import { serverOf, type ZooKeeperServer } from './zookeeper.ts'
import { prepareContainer } from './zookeeper-container.ts'
import { type Settings, usualSettings, ZOOKEEPER, ZooKeeperProgram } from './zookeeper-program.ts'

export interface EnsembleOptions {
  /** 3 by default. */
  readonly servers?: number
  /** Milliseconds; sessions are expired in steps of it. */
  readonly tickTime?: number
  /** Ticks after which a server gives up another one that is silent; 4 by default. */
  readonly syncLimit?: number
  /** Whether there are proxies between the servers. */
  readonly links?: boolean
  /** Further lines for `zoo.cfg`. */
  readonly config?: Settings
  /** Further flags for `java`. */
  readonly java?: readonly string[]
}

export interface EnsembleServer extends ZooKeeperServer {
  /** From 1; the top byte of the sessions that it makes. */
  readonly id: number
  /** In front of it. `hosts` and `port` are the server's own. */
  readonly proxy: TcpProxy
}

export interface Ensemble extends AsyncDisposable {
  readonly servers: readonly EnsembleServer[]
  /** All servers, each by its proxy. */
  readonly hosts: string
  /** Waits until there is one, and until nobody that runs is in search of it. */
  leader(): Promise<EnsembleServer>
  /** All that follow it; waits in the same way. */
  followers(): Promise<EnsembleServer[]>
  /** Any of them. */
  follower(): Promise<EnsembleServer>
  /** The server that this session's client is connected to now. */
  serverOf(session: bigint): Promise<EnsembleServer>
  /** What stands between servers; only with `links: true`. */
  readonly links: Links
  /** Kills all of them, then starts all of them; the ports and the data stay. */
  restart(): Promise<void>
  stop(): Promise<void>
}

const PATIENCE = 30_000
const POLL = 25

/** @throws Error saying what to install when there is no way to a ZooKeeper */
export async function startEnsemble(options: EnsembleOptions = {}): Promise<Ensemble> {
  const way = await provide(ZOOKEEPER)
  if (way === 'skip') throw new Error('there is no ZooKeeper, and JOBBOARD_SKIP says to do without')
  const ids = Array.from({ length: options.servers ?? 3 }, (_, index) => index + 1)
  const ports = new Map<number, ServerPorts>()
  for (const id of ids)
    ports.set(id, { client: await freePort(), quorum: await freePort(), election: await freePort() })
  const links = new Links()
  if (options.links) await links.open(ports)
  const servers = await Promise.all(ids.map((id) => prepare(id, { ports, links, options, way })))
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()))
    await links.close()
  }
  try {
    await Promise.all(servers.map((server) => server.restart()))
  } catch (error) {
    await stop()
    throw error
  }
  const followers = async () => (await inRole(servers, 'follower')).map(({ server }) => server)
  const any = async (found: Promise<EnsembleServer[]>) => {
    const [first] = await found
    if (!first) throw new Error('there is no such server')
    return first
  }
  return {
    servers,
    hosts: servers.map(({ proxy }) => proxy.hosts).join(','),
    leader: () => any(untilSome(async () => (await inRole(servers, 'leader')).map(({ server }) => server))),
    followers: () => untilSome(followers),
    follower: () => any(untilSome(followers)),
    serverOf: (session) => any(untilSome(() => holding(servers, session))),
    links,
    restart: async () => {
      await Promise.all(servers.map((server) => server.kill()))
      await Promise.all(servers.map((server) => server.restart()))
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** Where one server listens. */
export interface ServerPorts {
  readonly client: number
  readonly quorum: number
  readonly election: number
}

interface Plan {
  readonly ports: ReadonlyMap<number, ServerPorts>
  readonly links: Links
  readonly options: EnsembleOptions
  readonly way: Way
}

async function prepare(id: number, { ports, links, options, way }: Plan): Promise<EnsembleServer> {
  const port = ports.get(id)?.client ?? 0
  const seen = [...ports].map(([other, listens]) => {
    const { quorum, election } = links.seen({ from: id, to: other }) ?? listens
    return [`server.${other}`, `127.0.0.1:${quorum}:${election}:participant;127.0.0.1:${listens.client}`]
  })
  const settings = {
    ...usualSettings(options),
    initLimit: 10,
    syncLimit: options.syncLimit ?? 4,
    standaloneEnabled: false,
    // A leader hands its own view of the servers to the others, which are to have theirs, with proxies in it.
    reconfigEnabled: !options.links,
    ...options.config,
    ...Object.fromEntries(seen),
  }
  const plan = { id, port, settings, java: options.java }
  const program = way === 'container' ? await prepareContainer(plan) : await ZooKeeperProgram.prepare(plan)
  const proxy = await startProxy({ port })
  const stop = async () => {
    await program.stop()
    await proxy.close()
  }
  return Object.assign(serverOf(program), { id, proxy, stop, [Symbol.asyncDispose]: stop })
}

/** Nobody, while there is one that is neither. */
async function inRole(servers: readonly EnsembleServer[], role: 'leader' | 'follower') {
  const answers = await Promise.all(
    servers.map(async (server) => ({ server, answer: await server.fourLetter('srvr').catch(() => '') })),
  )
  const settled = answers.every(({ answer }) => answer === '' || answer.includes('Mode:'))
  return settled ? answers.filter(({ answer }) => answer.includes(`Mode: ${role}`)) : []
}

async function holding(servers: readonly EnsembleServer[], session: bigint): Promise<EnsembleServer[]> {
  const sid = `sid=0x${session.toString(16)},`
  const answers = await Promise.all(servers.map((server) => server.fourLetter('cons').catch(() => '')))
  return servers.filter((_, index) => answers[index]?.includes(sid))
}

async function untilSome<T>(look: () => Promise<T[]>): Promise<T[]> {
  const deadline = performance.now() + PATIENCE
  while (performance.now() < deadline) {
    const found = await look()
    if (found.length > 0) return found
    await sleep(POLL)
  }
  throw new Error(`the ensemble did not get there within ${PATIENCE} ms`)
}
