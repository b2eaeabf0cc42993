/**
 * Tests load the built library in place of its sources: loading some 600 modules takes a third of the time, and tests have the classes that `jobboard`
 * has in the examples which they call. `global-setup.ts` builds it before the first test.
 */
import { existsSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import type { Plugin } from 'vitest/config'
import { ROOT } from './build.ts'

const SOURCE = join(ROOT, 'src') + sep
const BUILT = join(ROOT, 'dist') + sep

/** Matches the modules that vitest leaves to Node, for `server.deps.external`. */
export const BUILT_MODULES = new RegExp(`^${BUILT.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}`)

/** Returns the file that is built of this source; undefined if the path is no source, or nothing is built of it. */
export function toBuiltPath(path: string): string | undefined {
  if (!path.startsWith(SOURCE)) return undefined
  const built = `${BUILT}${path.slice(SOURCE.length, -'ts'.length)}js`
  return existsSync(built) ? built : undefined
}

/** Returns a plugin that resolves an import of `src/**.ts` to what is built of it. The page of the dashboard is built into one file: its sources stay. */
export function builtLibrary(): Plugin {
  return {
    name: 'built-library',
    enforce: 'pre',
    resolveId(source, importer) {
      if (!importer || !/^\.\.?\/.*\.ts$/.test(source)) return null
      const built = toBuiltPath(resolve(dirname(importer), source))
      return built ? { id: built, external: true } : null
    },
  }
}
