/**
 * Which tests run when:
 *
 * | command | tier | tests |
 * |---|---|---|
 * | `npm test` | usual | the main behaviours, on real servers |
 * | `npm run test:all` | variants | all others: the files of `VARIANTS`, and what `variant.ts` defines in other files |
 * | `npm run test:long -- NAME` | long | all rows of the files that match NAME, with large counts |
 *
 * A test is a variant if a test of `npm test` fails for the same defect, if its inputs are random, or if it is too expensive for `npm test` as it is
 * written. Decision 63 lists the behaviours that only `npm run test:all` tests for that reason.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface VariantFiles {
  /** What these files add to `npm test`. */
  readonly what: string
  readonly files: readonly string[]
}

/** The files that `npm run test:all` runs, and `npm test` does not. */
export const VARIANTS: readonly VariantFiles[] = [
  {
    what: 'the C client of ZooKeeper as an observer, which is compiled where it can be',
    files: ['test/board/backends/zookeeper/c-client.test.ts'],
  },
  {
    what: 'guides and examples whose features have tests of their own, and which take servers with certificates or several daemons',
    files: [
      'test/guides/security.test.ts',
      'test/guides/zookeeper-client.test.ts',
      'test/examples/deployments.test.ts',
    ],
  },
  {
    what: 'the parts of the contract that a window of three jobs can change: each backend has tests of its own of the window',
    files: ['test/board/backends/*/window-contract.test.ts'],
  },
  {
    what: 'the contract on a board that is shared with TaskFlow, and TaskFlow itself beside this library',
    files: [
      'test/board/backends/zookeeper/taskflow/contract.test.ts',
      'test/board/backends/zookeeper/taskflow/taskflow.test.ts',
      'test/guides/taskflow.test.ts',
    ],
  },
  {
    what: 'random faults, random inputs',
    files: ['test/chaos/**/*.test.ts', 'test/property/**/*.test.ts', 'test/fuzz/*.test.ts'],
  },
  { what: 'the packed package in empty projects', files: ['test/package/*.test.ts'] },
  {
    what: 'the example of the archive on other backends, and with faults',
    files: ['crash', 'isolated', 'outage', 'postgres', 'processes', 'redis'].map(
      (name) => `test/examples/archive/${name}.test.ts`,
    ),
  },
  {
    what: 'conductors in processes of their own, under load and with faults: `conductor/`, `pool/` and the backends test the parts',
    files: [
      'test/conductor/isolation/out-of-memory.test.ts',
      'test/conductor/isolation/processes.test.ts',
      'test/conductor/zookeeper.test.ts',
    ],
  },
  {
    what: 'what only very many, or very large, values show',
    files: [
      'test/board/records/many-large.test.ts',
      'test/board/schedules/crontab.test.ts',
      'test/conductor/small-heap.test.ts',
      'test/persistence/record-memory.test.ts',
      'test/ui/page/long-board.test.ts',
    ],
  },
  {
    what: 'each page of the dashboard in each width and colour scheme, examined by axe-core, and its picture',
    files: ['test/ui/page/demo.test.ts', 'test/ui/page/pages.test.ts'],
  },
  {
    what: 'ensembles whose servers fail: single servers fail in `npm test`',
    files: [
      'test/board/backends/zookeeper/ensemble.test.ts',
      'test/zookeeper/ensemble.test.ts',
      'test/zookeeper/session/ensemble-lease.test.ts',
    ],
  },
  {
    what: 'containers and their files',
    files: ['test/docker/*.test.ts', 'test/support/server-container.test.ts'],
  },
]

/**
 * Returns the files that define variants with `variant.ts`. `split` also have tests of `npm test`, `variantsOnly` have none.
 *
 * @throws {Error} a file imports `usual` and nothing else, so `npm run test:all` would load it to run no test
 */
export function findSplitFiles(): { readonly split: string[]; readonly variantsOnly: string[] } {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  const split: string[] = []
  const variantsOnly: string[] = []
  for (const file of files) {
    if (!file.endsWith('.test.ts') || file.includes('node_modules')) continue
    const text = readFileSync(join(import.meta.dirname, file), 'utf8')
    if (!text.includes("/variant.ts'")) continue
    if (/^import \{ usual( as test)? \} from '.*\/variant\.ts'/m.test(text)) {
      throw new Error(`test/${file} has no variants: import test of vitest in place of usual`)
    }
    const isVariantsOnly = /^import \{ variant \} from/m.test(text) && !/^import .*\btest\b.* from 'vitest'/m.test(text)
    if (isVariantsOnly) variantsOnly.push(`test/${file}`)
    else split.push(`test/${file}`)
  }
  return { split, variantsOnly }
}
