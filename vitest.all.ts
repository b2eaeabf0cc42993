/** `npm run test:all`: the variants of what `npm test` has shown. `test/tiers.ts` says which they are. */
import { defineConfig } from 'vitest/config'
import { SPLIT, VARIANTS } from './test/tiers.ts'
import { NATIVE, options, toProjects } from './vitest.config.ts'

export default defineConfig({
  test: {
    ...options,
    env: { JOBBOARD_TIER: 'variants' },
    projects: toProjects({ include: [...VARIANTS.flatMap(({ files }) => files), ...SPLIT], alone: NATIVE }),
  },
})
