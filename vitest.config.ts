import { defineConfig } from 'vitest/config'

/**
 * Files that need a process of their own: they load third-party native code, which can end its process, put mocks in
 * the place of modules, which the next file in the process would meet, or count what the whole process has. All others
 * share a process with their like: loading the library anew for each file costs a tenth of the whole run.
 */
const ALONE = [
  'test/board/backends/zookeeper/native/*.test.ts',
  'test/zookeeper/native/contract.test.ts',
  'test/guides/zookeeper-client.test.ts',
  'test/board/backends/postgres/reattach.test.ts',
  'test/board/backends/zookeeper/commit/sequence-end.test.ts',
  'test/board/backends/zookeeper/store/fences.test.ts',
  'test/persistence/directory/links.test.ts',
  'test/persistence/directory/steps.test.ts',
  'test/board/queue/limit-costs.test.ts',
  'test/board/queue/queue-costs.test.ts',
]

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/costs.ts'],
    reporters: ['default', './test/support/addon-reporter.ts', './test/support/cost-reporter.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // By default a poll ends after 1 s, which is too short for a process to start on a busy machine.
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    // Most of a test's time is waiting for servers, so four fit on two cores, which by default would run one.
    maxWorkers: 4,
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...ALONE],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE } },
    ],
  },
})
