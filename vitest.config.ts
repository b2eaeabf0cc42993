/** `npm test`: every behaviour once. `test/tiers.ts` says what other commands run. */
import { defineConfig, type TestProjectInlineConfiguration, type ViteUserConfig } from 'vitest/config'
import { VARIANTS } from './test/tiers.ts'

/** Files that load third-party native code, which can end its process. The test of fences loads it in `npm run test:all` only. */
export const NATIVE = [
  'test/board/backends/zookeeper/native/*.test.ts',
  'test/zookeeper/native/contract.test.ts',
  'test/guides/zookeeper-client.test.ts',
  'test/board/backends/zookeeper/store/fences.test.ts',
]

/**
 * Other files that need a process of their own: they put mocks in the place of modules, which the next file in the process would meet, or
 * count what the whole process has. All others share a process with others: loading the library anew for each file costs a tenth of the
 * whole run.
 */
export const ALONE = [
  'test/board/backends/postgres/reattach.test.ts',
  'test/board/backends/zookeeper/commit/sequence-end.test.ts',
  'test/persistence/directory/links.test.ts',
  'test/persistence/directory/steps.test.ts',
  'test/board/queue/limit-costs.test.ts',
  'test/board/queue/queue-costs.test.ts',
]

/** The options of all tiers. */
export const options = {
  globalSetup: ['test/support/global-setup.ts'],
  setupFiles: ['test/support/costs.ts'],
  reporters: ['default', './test/support/addon-reporter.ts', './test/support/cost-reporter.ts'],
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // By default a poll ends after 1 s, which is too short for a process to start on a busy machine.
  expect: { poll: { timeout: 60_000 } },
  pool: 'forks',
  // Most of a test's time is waiting for servers, so four fit on two cores. The default is one.
  maxWorkers: 4,
} satisfies ViteUserConfig['test']

/** Returns the projects that run these files: those that need a process of their own have one each. */
export function toProjects({
  include,
  exclude = [],
  alone = [...NATIVE, ...ALONE],
}: {
  readonly include: readonly string[]
  readonly exclude?: readonly string[]
  readonly alone?: readonly string[]
}): TestProjectInlineConfiguration[] {
  const others = ['**/node_modules/**', ...exclude]
  return [
    {
      extends: true,
      test: { name: 'shared', include: [...include], exclude: [...others, ...alone], isolate: false },
    },
    { extends: true, test: { name: 'alone', include: [...alone], exclude: others } },
  ]
}

export default defineConfig({
  test: {
    ...options,
    projects: toProjects({ include: ['test/**/*.test.ts'], exclude: VARIANTS.flatMap(({ files }) => files) }),
  },
})
