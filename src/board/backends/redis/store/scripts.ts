/** The Lua scripts of boards. Each is a file in `scripts/`, which is read at first use. */
import { createHash } from 'node:crypto'
import { readScript } from '../../../../core/script-file.ts'

/** The text of a script, and the hash by which Redis knows it. */
interface LoadedScript {
  readonly lua: string
  readonly sha: string
}

export class Script {
  readonly #file: string
  #loaded: LoadedScript | undefined

  constructor(name: string) {
    this.#file = `../scripts/${name}.lua`
  }

  /** Reads the file at the first call. @throws InvalidState if it is missing */
  load(): LoadedScript {
    if (this.#loaded) return this.#loaded
    const lua = readScript(import.meta.url, this.#file)
    this.#loaded = { lua, sha: createHash('sha1').update(lua).digest('hex') }
    return this.#loaded
  }
}

export const SCRIPTS = {
  commit: new Script('commit'),
  join: new Script('join'),
  renew: new Script('renew'),
  release: new Script('release'),
  read: new Script('read'),
  queues: new Script('queues'),
  range: new Script('range'),
  delayed: new Script('delayed'),
  claimed: new Script('claimed'),
  status: new Script('status'),
  follow: new Script('follow'),
} as const

/** Loads all scripts. @throws InvalidState if a file is missing */
export function loadScripts(): void {
  for (const script of Object.values(SCRIPTS)) script.load()
}
