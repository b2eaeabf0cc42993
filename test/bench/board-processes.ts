/** Processes that work on one board, started together and awaited. */

import { join } from 'node:path'
import { ROOT } from '../support/build.ts'
import { startZooKeeper, type ZooKeeperServer } from '../support/zookeeper.ts'
import { startPart } from './part.ts'

const CHILD = join(ROOT, 'test/bench/board-child.ts')

/** As in production: with its compiler, its heap, and fsync. */
export const SERVER_JAVA = ['-Xmx1g', '-XX:TieredStopAtLevel=4', '-XX:-UseSerialGC', '-XX:+UseParallelGC']

export function startBenchServer(): Promise<ZooKeeperServer> {
  return startZooKeeper({ config: { forceSync: 'yes' }, java: SERVER_JAVA })
}

export interface Worker extends AsyncDisposable {
  /** Begins its part; resolves with what it says at its end, and when that was. */
  go(): Promise<{ readonly before: number; readonly result: unknown; readonly at: number }>
}

/** One that is connected and waits to be told to begin. */
export async function startWorker(role: string, uri: string, ...numbers: readonly number[]): Promise<Worker> {
  const part = await startPart(CHILD, [role, uri, ...numbers.map(String)])
  return {
    go: async () => {
      const { said, at } = await part.go()
      return { ...(said as { before: number; result: unknown }), at }
    },
    [Symbol.asyncDispose]: () => part[Symbol.asyncDispose](),
  }
}

/** The server's own count. */
export async function transactions(server: ZooKeeperServer): Promise<number> {
  const zxid = /Zxid: 0x([0-9a-f]+)/.exec(await server.fourLetter('srvr'))?.[1] ?? '0'
  return Number(BigInt(`0x${zxid}`) & 0xffffffffn)
}
