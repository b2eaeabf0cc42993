/** Processes that work on one board, started together and awaited. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ROOT } from '../support/build.ts'
import { startZooKeeper, type ZooKeeperServer } from '../support/zookeeper.ts'

const CHILD = join(import.meta.dirname, 'board-child.ts')

/** As in production: with its compiler, its heap, and fsync. */
const JAVA = ['-Xmx1g', '-XX:TieredStopAtLevel=4', '-XX:-UseSerialGC', '-XX:+UseParallelGC']

export function startBenchServer(): Promise<ZooKeeperServer> {
  return startZooKeeper({ config: { forceSync: 'yes' }, java: JAVA })
}

export interface Worker extends AsyncDisposable {
  /** Begins its part; resolves with what it says at its end. */
  go(): Promise<{ readonly before: number; readonly result: unknown }>
}

/** One that is connected and waits to be told to begin. */
export async function startWorker(role: string, uri: string, ...numbers: readonly number[]): Promise<Worker> {
  const args = ['--expose-gc', '--import', 'tsx', CHILD, role, uri, ...numbers.map(String)]
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const [ready] = await Promise.race([once(lines, 'line'), ended])
  if (ready !== 'ready') throw new Error(`${role} on ${uri} ended before it was ready`)
  return {
    go: async () => {
      const said = once(lines, 'line')
      child.stdin.write('go\n')
      const [line] = await Promise.race([said, ended])
      if (typeof line !== 'string') throw new Error(`${role} on ${uri} ended without a result`)
      await ended
      return JSON.parse(line) as { before: number; result: unknown }
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await ended
      }
    },
  }
}

/** The server's own count. */
export async function transactions(server: ZooKeeperServer): Promise<number> {
  const zxid = /Zxid: 0x([0-9a-f]+)/.exec(await server.fourLetter('srvr'))?.[1] ?? '0'
  return Number(BigInt(`0x${zxid}`) & 0xffffffffn)
}
