/** Where the packages are that only benchmarks need: folders with a lock of their own. */
import { join } from 'node:path'
import { ROOT } from '../support/build.ts'

export const PEERS = join(ROOT, 'test/bench/peers')
/** Products with durable flows: the server among them is large, so they are installed only where they are measured. */
export const DURABLE_PEERS = join(ROOT, 'test/bench/durable-peers')
