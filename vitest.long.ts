/** `npm run test:long -- NAME`: the tests whose files match NAME, with the large counts. */
import { defineConfig, mergeConfig } from 'vitest/config'
import usual from './vitest.config.ts'

export default mergeConfig(
  usual,
  defineConfig({ test: { env: { JOBBOARD_LONG: '1' }, testTimeout: 1_800_000, hookTimeout: 300_000 } }),
)
