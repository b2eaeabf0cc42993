/** `npm run test:long -- NAME`: the tests whose files match NAME, with the large counts. */
import { defineConfig } from 'vitest/config'
import { options, toProjects } from './vitest.config.ts'

export default defineConfig({
  test: {
    ...options,
    env: { JOBBOARD_LONG: '1', JOBBOARD_TIER: 'long' },
    testTimeout: 1_800_000,
    hookTimeout: 300_000,
    projects: toProjects({ include: ['test/**/*.test.ts'] }),
  },
})
