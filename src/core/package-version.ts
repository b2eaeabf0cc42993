/** The release of this package. */
import { createRequire } from 'node:module'

let version: string | undefined

/** Returns the version of this package; works from the sources and from the build. */
export function packageVersion(): string {
  version ??= (createRequire(import.meta.url)('../../package.json') as { version: string }).version
  return version
}
