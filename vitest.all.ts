/** `npm run test:all`: the variants of what `npm test` has shown. `test/tiers.ts` says which they are. */
import { defineConfig } from 'vitest/config'
import { findSplitFiles, VARIANTS } from './test/tiers.ts'
import { ALONE, NATIVE, options, toProjects } from './vitest.config.ts'

const { split, variantsOnly } = findSplitFiles()

export default defineConfig({
  test: {
    ...options,
    env: { JOBBOARD_TIER: 'variants' },
    projects: toProjects({
      include: [...VARIANTS.flatMap(({ files }) => files), ...split, ...variantsOnly],
      alone: [...NATIVE, ...ALONE.filter((file) => split.includes(file))],
    }),
  },
})
