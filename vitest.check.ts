/** What `npm run check` runs: the checks that need no server. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    // The types of all sources are read: on a busy machine this takes longer than the 5 s of a test.
    testTimeout: 60_000,
    include: [
      'test/architecture.test.ts',
      'test/source-rules.test.ts',
      'test/scripts.test.ts',
      'test/docs/links.test.ts',
    ],
  },
})
