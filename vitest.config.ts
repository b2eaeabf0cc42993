/** `npm test`: the main behaviours. `test/tiers.ts` says what other commands run. */

import { defineConfig, type TestProjectInlineConfiguration, type ViteUserConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { BUILT_MODULES, builtLibrary } from './test/support/built-library.ts'
import { WORKERS } from './test/support/ports.ts'
import { findSplitFiles, VARIANTS } from './test/tiers.ts'

/** The file that loads third-party native code, which can end its process. */
export const NATIVE = ['test/board/backends/zookeeper/c-client.test.ts']

/**
 * Other files that need a process of their own: they put mocks in the place of modules, which the next file in the process would meet, load a second copy
 * of the library, or count what the whole process has. All others share a process with others: loading the library anew for each file costs a tenth of
 * the whole run.
 */
export const ALONE = [
  'test/board/backends/postgres/reattach.test.ts',
  'test/board/backends/zookeeper/commit/sequence-end.test.ts',
  'test/persistence/directory/links.test.ts',
  'test/persistence/directory/steps.test.ts',
  'test/board/queue/limit-costs.test.ts',
  'test/board/queue/queue-costs.test.ts',
  'test/core/errors.test.ts',
  'test/flow/patterns/linear.test.ts',
]

/** Matches the files that take longest, and small files that mostly wait: the runner begins small files last. */
const LONGEST =
  /\/(contract|window-contract|package|stored-bytes|slow-clients|snippets|examples)\.test\.ts$|\/test\/(chaos|examples\/archive)\//

/**
 * Spreads the longest files over the first third of a run. Were one of them the last, the other workers would be idle meanwhile; were all of them the
 * first, too: they mostly wait, for servers and for time to pass.
 */
class LongestEarly extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const longest = sorted.filter(({ moduleId }) => LONGEST.test(moduleId))
    const others = sorted.filter(({ moduleId }) => !LONGEST.test(moduleId))
    const between = Math.floor(others.length / 3 / Math.max(longest.length, 1))
    const groups = longest.map((file, index) => [file, ...others.slice(index * between, (index + 1) * between)])
    return [...groups.flat(), ...others.slice(longest.length * between)]
  }
}

/** The options of all tiers. */
export const options = {
  globalSetup: ['test/support/global-setup.ts'],
  setupFiles: ['test/support/costs.ts'],
  reporters: ['default', './test/support/cost-reporter.ts', './test/support/empty-reporter.ts'],
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // By default a poll ends after 1 s, which is too short for a process to start on a busy machine.
  expect: { poll: { timeout: 60_000 } },
  pool: 'forks',
  // Tests wait for servers, and for time to pass. With four, the contracts of five boards left half of two cores idle. The default is one.
  maxWorkers: WORKERS,
  // Most code of a test runs a few times: V8 spends less time on optimizing it, and on collecting garbage. Together a fifth of the processor time.
  execArgv: ['--interrupt-budget=1000000', '--max-semi-space-size=64'],
  // All tests of a suite may be variants.
  passWithNoTests: true,
  sequence: { sequencer: LongestEarly },
} satisfies ViteUserConfig['test']

/** `vitest related` and the watch mode must see which tests import a source. */
const isBuiltLibraryUsed = process.argv[2] === 'run'

/**
 * Returns the projects that run these files. Files in `alone` have a process each. They load the sources, because a module of the built library cannot
 * be replaced by a mock.
 */
export function toProjects({
  include,
  exclude = [],
  alone = ALONE,
}: {
  readonly include: readonly string[]
  readonly exclude?: readonly string[]
  readonly alone?: readonly string[]
}): TestProjectInlineConfiguration[] {
  const others = ['**/node_modules/**', ...exclude]
  return [
    {
      extends: true,
      plugins: isBuiltLibraryUsed ? [builtLibrary()] : [],
      test: {
        name: 'shared',
        include: [...include],
        exclude: [...others, ...alone],
        isolate: false,
        server: { deps: { external: isBuiltLibraryUsed ? [BUILT_MODULES] : [] } },
      },
    },
    { extends: true, test: { name: 'alone', include: [...alone], exclude: others } },
  ]
}

export default defineConfig({
  test: {
    ...options,
    projects: toProjects({
      include: ['test/**/*.test.ts'],
      exclude: [...VARIANTS.flatMap(({ files }) => files), ...findSplitFiles().variantsOnly],
    }),
  },
})
