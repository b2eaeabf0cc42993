import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/long/**', 'test/bench/**', 'node_modules/**'],
    globalSetup: ['test/support/global-setup.ts'],
    reporters: ['default', './test/support/addon-reporter.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Most of a test's time is waiting for servers, so three fit on two cores, which by default would run one.
    maxWorkers: 3,
  },
})
