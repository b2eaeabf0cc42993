/** A ZooKeeper in a folder of its own, both gone when this process is: also when that is killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { JobboardError } from '../../core/errors.ts'
import { monotonic, sleep } from '../../core/time.ts'
import type { CliContext } from '../context.ts'
import { askServers } from '../doctor/four-letter.ts'
import type { Place, Recipe } from './servers.ts'

/**
 * A shell stands between: it hears of our end by its standard input, whatever ended us, ends the server, and deletes the
 * folder. Ctrl-C reaches all of a terminal's processes; the shell and the server leave it to us.
 */
const GUARD = `
trap '' INT TERM HUP
exec 3<&0
"$@" >"$FOLDER/log" 2>&1 </dev/null 3<&- &
server=$!
{ read -r _ <&3; trap '' USR1; kill -s KILL $server; exit 0; } >/dev/null 2>&1 &
reader=$!
wait $server
code=$?
[ -z "$FAREWELL" ] || $FAREWELL >/dev/null 2>&1
kill -s USR1 $reader 2>/dev/null
if wait $reader; then rm -rf -- "$FOLDER"; fi
exit $code
`

/** In milliseconds: a container's image may have to be fetched first. */
const READY_WITHIN = 120_000
const POLL = 50

export interface DevServerOptions {
  readonly recipe: Recipe
  readonly port: number
  readonly env: CliContext['env']
}

export class DevServer implements AsyncDisposable {
  readonly #options: DevServerOptions
  #place: Place | undefined
  #guard: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()

  constructor(options: DevServerOptions) {
    this.#options = options
  }

  /** Resolves when the server is gone. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** Resolves when it serves. @throws JobboardError with what it said, when it does not; the signal's reason */
  async start(signal: AbortSignal): Promise<void> {
    const { recipe, port, env } = this.#options
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-dev-'))
    const place = { folder, port }
    this.#place = place
    await mkdir(join(folder, 'data'))
    await writeFile(join(folder, 'zoo.cfg'), configFor(recipe, place))
    const farewell = recipe.farewell?.(place).join(' ') ?? ''
    const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', ...recipe.command(place)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { ...env, FOLDER: folder, FAREWELL: farewell },
      detached: true,
    })
    this.#guard = guard
    guard.stdin?.on('error', () => undefined)
    this.#ended = once(guard, 'close').then(() => undefined)
    await this.#untilReady(signal)
  }

  /** The last line of what it said, which tells the most. */
  async said(): Promise<string> {
    const log = await readFile(join(this.#place?.folder ?? '', 'log'), 'utf8').catch(() => '')
    return log.trim().split('\n').at(-1) || 'it said nothing'
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#guard?.stdin?.destroy()
    await this.#ended
    if (this.#place) await rm(this.#place.folder, { recursive: true, force: true })
  }

  async #untilReady(signal: AbortSignal): Promise<void> {
    let gone = false
    const over = this.#ended.then(() => {
      gone = true
    })
    const until = monotonic() + READY_WITHIN
    while (!gone && monotonic() < until) {
      const [answer] = await askServers([{ host: '127.0.0.1', port: this.#options.port }])
      if (answer?.mode !== undefined) return
      await Promise.race([sleep(POLL, { signal }), over])
    }
    throw new JobboardError(`ZooKeeper did not start on port ${this.#options.port}: ${await this.said()}`)
  }
}

/** For one developer: what is not flushed to the disk at once is lost with the power, and would be thrown away anyway. */
function configFor({ word }: Recipe, { folder, port }: Place): string {
  const settings = {
    tickTime: 1_000,
    dataDir: word === 'docker' ? '/data' : join(folder, 'data'),
    clientPort: port,
    ...(word === 'docker' ? {} : { clientPortAddress: '127.0.0.1' }),
    'admin.enableServer': false,
    '4lw.commands.whitelist': 'srvr,ruok',
    extendedTypesEnabled: true,
    maxClientCnxns: 0,
    forceSync: 'no',
  }
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('')
}
