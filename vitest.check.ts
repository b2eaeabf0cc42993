/** What `npm run check` runs: the checks that need no server. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: { include: ['test/architecture.test.ts', 'test/scripts.test.ts', 'test/docs/links.test.ts'] },
})
