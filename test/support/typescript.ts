/** The options with which a process of the tests runs TypeScript. */
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

export const TYPESCRIPT: readonly string[] = [
  '--import',
  pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href,
]
