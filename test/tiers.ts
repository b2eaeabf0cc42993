/**
 * Which tests run when:
 *
 * | command | tier | tests |
 * |---|---|---|
 * | `npm test` | usual | every behaviour once, on real servers |
 * | `npm run test:all` | variants | all others: the files of `VARIANTS`, and those of `SPLIT` with the other rows of their tables |
 * | `npm run test:long -- NAME` | long | all rows of the files that match NAME, with large counts |
 *
 * A test is a variant if a test of `npm test` already fails for the same defect, or if its inputs are random.
 */

interface VariantFiles {
  /** What these files add to `npm test`. */
  readonly what: string
  readonly files: readonly string[]
}

/** The files that `npm run test:all` runs, and `npm test` does not. */
export const VARIANTS: readonly VariantFiles[] = [
  {
    what: 'the second driver of ZooKeeper, which is compiled where it can be',
    files: [
      'test/board/backends/zookeeper/native/*.test.ts',
      'test/zookeeper/native/*.test.ts',
      'test/guides/zookeeper-client.test.ts',
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
    what: 'the demo of the archive on other backends, and with faults',
    files: ['isolated', 'outage', 'postgres', 'processes', 'redis'].map(
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

/** Files that run in both: their tables of tests have other rows in each. */
export const SPLIT: readonly string[] = [
  'test/board/backends/postgres/failures.test.ts',
  'test/board/backends/zookeeper/store/fences.test.ts',
  'test/cli/dev/demo.test.ts',
  'test/conductor/isolation/stops.test.ts',
]

export type Tier = 'usual' | 'variants' | 'long'

/** Returns the tier of this run: the configuration sets it. */
export function currentTier(): Tier {
  const tier = process.env['JOBBOARD_TIER']
  return tier === 'variants' || tier === 'long' ? tier : 'usual'
}

/**
 * Returns the rows of a table of tests that run in this tier.
 *
 * @param rows.usual those of `npm test`
 * @param rows.variants those of `npm run test:all`
 */
export function rowsOf<T>({
  usual,
  variants,
}: {
  readonly usual: readonly T[]
  readonly variants: readonly T[]
}): readonly T[] {
  const tier = currentTier()
  return tier === 'long' ? [...usual, ...variants] : tier === 'variants' ? variants : usual
}
