/** What a process of the tests imports first, so that it can run TypeScript. */
import { register } from 'node:module'

process.setSourceMapsEnabled(true)
register('./typescript-hooks.mjs', import.meta.url)
