/**
 * `npm run bench -- NAME`: prints figures, each beside another of the same run, and whether goals are met. Speeds alone mean
 * nothing elsewhere. `--brief` does everything in small numbers.
 *
 * What is measured runs as the package is built: what lets a process run TypeScript as it is names every function that is
 * made, at every call, which takes some of these a third of their time.
 */
import { join } from 'node:path'
import { ensureBuilt, ROOT } from '../support/build.ts'
import { compiled } from '../support/compiled.ts'
import { beBrief } from './brief.ts'

const BENCHES: readonly string[] = [
  'attached',
  'board',
  'boards',
  'conductor',
  'contention',
  'durable',
  'engine',
  'failover',
  'file',
  'idle-transaction',
  'job',
  'limits',
  'logbook',
  'lone',
  'many',
  'peers',
  'pool',
  'postgres',
  'queues',
  'scale',
  'schedule',
  'sessions',
  'start',
  'telemetry',
  'ui',
  'upgrade',
  'zookeeper',
]

const [name = '', flag = '--full', ...others] = process.argv.slice(2)
if (BENCHES.includes(name) && ['--full', '--brief'].includes(flag) && others.length === 0) {
  if (flag === '--brief') beBrief()
  await ensureBuilt()
  const script = await compiled(join(ROOT, `test/bench/${name}.ts`), { bare: true })
  const bench: { default: () => Promise<void> } = await import(script)
  await bench.default()
} else {
  console.error(`npm run bench -- NAME [--brief], where NAME is one of ${BENCHES.join(', ')}`)
  process.exitCode = 2
}
