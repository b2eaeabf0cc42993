/** Where the packages are that only benchmarks need: a folder with a lock of its own. */
import { join } from 'node:path'

export const PEERS = join(import.meta.dirname, 'peers')
