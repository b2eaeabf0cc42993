/**
 * One life of a connection: opened, used until anything is wrong with it, never mended. Whoever needs another opens another,
 * so nothing is ever sent again, or to another server, behind our back.
 *
 * It is two: one for commands, one that hears what is published. When either breaks, both are closed. An answer that does
 * not come in time breaks it, too: a connection that has gone deaf looks like one that is idle.
 */
import { createHash } from 'node:crypto'
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis'
import { type Deferred, deferred } from '../../core/abort.ts'
import { IncompatibleVersion, InvalidArgument } from '../../core/errors.ts'
import { complaintOf } from './errors.ts'
import type { RedisPlace } from './place.ts'

type Driver = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>
type Client = Redis | Cluster

/** A script, and what Redis calls it. */
export interface Script {
  readonly lua: string
  readonly sha: string
}

export type Argument = string | Buffer

export interface ConnectionOptions {
  readonly place: RedisPlace
  readonly channel: string
  /** How long an answer may take, in milliseconds. */
  readonly patience: number
  /** Something was published. */
  readonly heard: (message: Buffer) => void
  readonly signal: AbortSignal
}

export function script(lua: string): Script {
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}

/** @throws InvalidArgument saying what to install */
export async function loadDriver({ uri }: RedisPlace): Promise<Driver> {
  try {
    return await import('ioredis')
  } catch (cause) {
    throw new InvalidArgument(`${uri} needs the ioredis package: install ioredis@5`, { cause })
  }
}

/** Before 6.2 a script's writes and its clock do not go together in every setting. */
const OLDEST = [6, 2] as const

/** @throws IncompatibleVersion */
export function assertVersion(info: string): void {
  const [, version = '', major, minor] = /^redis_version:((\d+)\.(\d+)\S*)/m.exec(info) ?? []
  if (version === '' || Number(major) > OLDEST[0]) return
  if (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]) return
  throw new IncompatibleVersion(`Redis ${version} is too old for a board; it takes ${OLDEST.join('.')} or newer`)
}

export class Connection {
  readonly #commands: Client
  readonly #hearing: Client
  readonly #patience: number
  readonly #broken: Deferred<Error> = deferred()
  readonly #waiting = new Set<(error: Error) => void>()
  #why: Error | undefined

  private constructor(clients: { commands: Client; hearing: Client }, options: ConnectionOptions) {
    this.#commands = clients.commands
    this.#hearing = clients.hearing
    this.#patience = options.patience
    for (const client of new Set([this.#commands, this.#hearing])) {
      // The last of these says why it was closed.
      client.on('error', (error: Error) => {
        this.#why = error
      })
      client.on('end', () => this.break(this.#why ?? new Error('the connection was closed')))
    }
    this.#hearing.on('messageBuffer', (_: Buffer, message: Buffer) => options.heard(message))
  }

  /** @throws what the driver says, or what the server answered */
  static async open(driver: Driver, options: ConnectionOptions): Promise<Connection> {
    const clients = clientsOf(driver, options)
    const connection = new Connection(clients, options)
    const stop = () => connection.break(options.signal.reason)
    options.signal.addEventListener('abort', stop, { once: true })
    try {
      options.signal.throwIfAborted()
      await Promise.race([connection.#open(options), connection.broken.then((why) => Promise.reject(why))])
      return connection
    } catch (error) {
      connection.break(error instanceof Error ? error : new Error(String(error)))
      throw connection.#why ?? error
    } finally {
      options.signal.removeEventListener('abort', stop)
    }
  }

  /** Resolves with the reason when it is of no use any more. */
  get broken(): Promise<Error> {
    return this.#broken.promise
  }

  /**
   * Runs a script; sends it whole where the server does not know it yet, behind all that was sent meanwhile: so what is only
   * true at the moment it is sent is a function here. Answers are bytes, numbers, null and lists.
   */
  async run(
    { lua, sha }: Script,
    keys: readonly string[],
    args: readonly Argument[] | (() => readonly Argument[]),
  ): Promise<unknown> {
    const send = (command: string, what: string) =>
      this.ask(command, what, String(keys.length), ...keys, ...(typeof args === 'function' ? args() : args))
    try {
      return await send('evalsha', sha)
    } catch (error) {
      // What is not known was not run.
      if (complaintOf(error) !== 'forgotten') throw error
      return send('eval', lua)
    }
  }

  ask(command: string, ...args: Argument[]): Promise<unknown> {
    return this.#answered(this.#commands.callBuffer(command, ...args))
  }

  /** Idempotent. What waits for an answer fails at once, whatever becomes of the sockets. */
  break(why: Error): void {
    this.#broken.resolve(why)
    for (const fail of this.#waiting) fail(why)
    this.#waiting.clear()
    this.#commands.disconnect()
    this.#hearing.disconnect()
  }

  async #open({ place, channel }: ConnectionOptions): Promise<void> {
    const clients = [...new Set([this.#commands, this.#hearing])]
    await this.#answered(Promise.all(clients.map((client) => client.connect())))
    await this.#select(place)
    await this.#answered(this.#hearing.subscribe(channel))
    assertVersion(String(await this.ask('info', 'server')))
  }

  /** Left to the driver, a refusal would be overheard, and all be done in database 0, which is somebody else's. */
  async #select({ db, uri }: RedisPlace): Promise<void> {
    if (db === 0) return
    await this.ask('select', String(db)).catch((cause: Error) => {
      if (complaintOf(cause) !== 'odd') throw cause
      throw new InvalidArgument(`${uri}: there is no database ${db} on this server (${cause.message})`, { cause })
    })
  }

  #answered(answer: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.break(new Error(`no answer within ${this.#patience} ms`)), this.#patience)
      const fail = (error: Error) => {
        clearTimeout(timer)
        this.#waiting.delete(fail)
        reject(error)
      }
      this.#waiting.add(fail)
      const done = (value: unknown) => {
        clearTimeout(timer)
        this.#waiting.delete(fail)
        resolve(value)
      }
      answer.then(done, (error: Error & { command?: unknown }) => {
        // What was sent may hold somebody's secrets, and errors are printed.
        delete error.command
        fail(error)
        const complaint = complaintOf(error)
        if (complaint === undefined || complaint === 'away' || complaint === 'denied') this.break(error)
      })
    })
  }
}

/** Nothing is tried again, queued or sent elsewhere by the driver itself. */
function clientsOf(
  { Redis, Cluster }: Driver,
  { place, patience }: ConnectionOptions,
): {
  commands: Client
  hearing: Client
} {
  const { kind, hosts, master, credentials, tls } = place
  const user = credentials?.user
  const usual: RedisOptions = {
    lazyConnect: true,
    connectTimeout: patience,
    enableOfflineQueue: false,
    // It would complain on the console of a user who may not ask INFO, and scripts tell as well that a server is loading.
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    disconnectTimeout: 100,
    disableClientInfo: true,
    connectionName: 'jobboard',
    ...(user ? { username: user } : {}),
    ...(credentials?.password === undefined ? {} : { password: credentials.password }),
    ...(tls ? { tls: { ...tls, ca: tls.ca as string | Buffer | (string | Buffer)[] } } : {}),
  }
  if (kind === 'cluster') {
    const { retryStrategy: _, enableOfflineQueue: __, lazyConnect: ___, ...redisOptions } = usual
    const options: ClusterOptions = {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: () => null,
      maxRedirections: 0,
      redisOptions,
    }
    const cluster = new Cluster([...hosts], options)
    return { commands: cluster, hearing: cluster }
  }
  const sentinel: RedisOptions = {
    sentinels: [...hosts],
    name: master,
    sentinelRetryStrategy: () => null,
    ...(tls ? { enableTLSForSentinelMode: true } : {}),
  }
  const [{ host, port }] = hosts
  const options = { ...usual, ...(kind === 'sentinel' ? sentinel : { host, port }) }
  return { commands: new Redis(options), hearing: new Redis(options) }
}
