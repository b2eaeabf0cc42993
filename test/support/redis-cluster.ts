/** A cluster of three masters for tests, each with a third of the slots, made by hand as `redis-cli --cluster create` would. */
import { Redis } from 'ioredis'
import { freePort } from './ports.ts'
import { type RedisServer, startRedis } from './redis.ts'

const SLOTS = 16_384
const MASTERS = 3
/** How long a key may take on its way, in milliseconds. */
const PATIENCE = '5000'

interface Node {
  readonly server: RedisServer
  readonly bus: number
  readonly client: Redis
}

export interface RedisCluster extends AsyncDisposable {
  /** `127.0.0.1:PORT,…` */
  readonly hosts: string
  /** The master that keeps this key; which of them, from 0. */
  masterOf(key: string): Promise<number>
  /** Moves the slot of this key, and all keys in it, to the next master. */
  moveSlotOf(key: string): Promise<void>
}

export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes = await Promise.all(Array.from({ length: MASTERS }, startNode))
  const clients = nodes.map(({ client }) => client)
  const [{ client: first } = never()] = nodes
  for (const { server, bus } of nodes.slice(1)) {
    await first.call('CLUSTER', 'MEET', '127.0.0.1', String(server.port), String(bus))
  }
  const part = Math.ceil(SLOTS / MASTERS)
  for (const [index, client] of clients.entries()) {
    const [from, to] = [index * part, Math.min((index + 1) * part, SLOTS) - 1]
    await client.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to))
  }
  for (const client of clients) while (!(await isLoaded(client))) await client.ping()
  const ownerOf = async (slot: number) => {
    for (const [index, client] of clients.entries()) {
      const ranges = (await client.cluster('SHARDS').catch(() => [])) as unknown[]
      const own = await client.cluster('MYID')
      if (ranges.some((shard) => keeps(shard, own, slot))) return index
    }
    throw new Error(`nobody keeps slot ${slot}`)
  }
  return {
    hosts: nodes.map(({ server }) => `127.0.0.1:${server.port}`).join(','),
    masterOf: async (key) => ownerOf(await first.cluster('KEYSLOT', key)),
    moveSlotOf: async (key) => {
      const slot = await first.cluster('KEYSLOT', key)
      const at = await ownerOf(slot)
      await move(nodes, { slot, from: nodes[at] ?? never(), to: nodes[(at + 1) % MASTERS] ?? never() })
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.disconnect()
      await Promise.all(nodes.map(({ server }) => server.stop()))
    },
  }
}

async function startNode(): Promise<Node> {
  const bus = await freePort()
  const announced = { 'cluster-announce-ip': '127.0.0.1', 'cluster-port': String(bus) }
  const server = await startRedis({
    config: { 'cluster-enabled': 'yes', 'cluster-node-timeout': '5000', ...announced },
  })
  return { server, bus, client: new Redis(server.uri) }
}

/** Whether it knows the others, and that somebody keeps each slot. */
async function isLoaded(client: Redis): Promise<boolean> {
  const info = await client.cluster('INFO')
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${MASTERS}`)
}

/** As the guide to clusters has it: announced on both sides, key by key, and then told to everybody. */
async function move(
  nodes: readonly Node[],
  { slot, from, to }: { readonly slot: number; readonly from: Node; readonly to: Node },
): Promise<void> {
  const [source, target] = await Promise.all([from, to].map(({ client }) => client.cluster('MYID')))
  await to.client.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', source ?? '')
  await from.client.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', target ?? '')
  for (let keys = await keysIn(from, slot); keys.length > 0; keys = await keysIn(from, slot)) {
    await from.client.call(
      'MIGRATE',
      '127.0.0.1',
      String(to.server.port),
      '',
      '0',
      PATIENCE,
      'REPLACE',
      'KEYS',
      ...keys,
    )
  }
  for (const { client } of [to, from, ...nodes]) {
    await client.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', target ?? '')
  }
}

async function keysIn({ client }: Node, slot: number): Promise<string[]> {
  return (await client.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '100')) as string[]
}

/** Of an answer to CLUSTER SHARDS: `['slots', [from, to, …], 'nodes', [['id', ID, …], …]]`. */
function keeps(shard: unknown, id: string, slot: number): boolean {
  const [, slots, , members] = shard as [string, number[], string, unknown[][]]
  if (!members.some((member) => member.includes(id))) return false
  return slots.some((from, index) => index % 2 === 0 && from <= slot && slot <= (slots[index + 1] ?? -1))
}

function never(): never {
  throw new Error('there is no such node')
}
