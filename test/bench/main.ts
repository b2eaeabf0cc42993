/** `npm run bench -- NAME`: prints figures, each beside another of the same run. Speeds alone mean nothing elsewhere. */
import { ensureBuilt } from '../support/build.ts'

const BENCHES: Readonly<Record<string, () => Promise<{ default: () => Promise<void> }>>> = {
  board: () => import('./board.ts'),
  boards: () => import('./boards.ts'),
  conductor: () => ensureBuilt().then(() => import('./conductor.ts')),
  contention: () => import('./contention.ts'),
  engine: () => ensureBuilt().then(() => import('./engine.ts')),
  failover: () => import('./failover.ts'),
  logbook: () => import('./logbook.ts'),
  peers: () => import('./peers.ts'),
  zookeeper: () => import('./zookeeper.ts'),
}

const [name = ''] = process.argv.slice(2)
const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined
if (bench) {
  await (await bench()).default()
} else {
  console.error(`npm run bench -- NAME, where NAME is one of ${Object.keys(BENCHES).join(', ')}`)
  process.exitCode = 2
}
