/** Which release this is. */
import { createRequire } from 'node:module'

let version: string | undefined

/** Of this package, from the sources as well as from what was built of them. */
export function packageVersion(): string {
  version ??= (createRequire(import.meta.url)('../../package.json') as { version: string }).version
  return version
}
