/** Free ports of the loopback interface. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** How many files the runner tests side by side. */
export const WORKERS = 6

/** Below the ports that systems give to outgoing connections: one of those would keep a killed server from its own. */
const LOWEST = 10_000
const ABOVE_HIGHEST = 31_000
/** One for each worker of the tests, whose numbers begin at 1, and range 0 for all other processes. */
const RANGES = WORKERS + 1
const PORTS_PER_RANGE = (ABOVE_HIGHEST - LOWEST) / RANGES

let next = randomInt(PORTS_PER_RANGE)

/**
 * Returns a free port. Each worker takes the ports of its own range in order. With random ports, a test could take the
 * port of a killed server that another test is about to restart.
 */
export async function freePort(): Promise<number> {
  const range = Number(process.env['VITEST_POOL_ID'] ?? 0) % RANGES
  for (;;) {
    const port = LOWEST + range * PORTS_PER_RANGE + next
    next = (next + 1) % PORTS_PER_RANGE
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
