/** Where the packages are that only benchmarks need: a folder with a lock of its own. */
import { join } from 'node:path'
import { ROOT } from '../support/build.ts'

export const PEERS = join(ROOT, 'test/bench/peers')
