/**
 * One life of a connection: opened, used until anything is wrong with it, never mended. Whoever needs another opens another,
 * so nothing is ever sent again, or to another server, behind our back.
 *
 * It is two: one for commands, one that hears what is published. When either breaks, both are closed. An answer that does
 * not come in time breaks it, too: a connection that has gone deaf looks like one that is idle.
 */
import { createHash } from 'node:crypto'
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis'
import { createDeferred, type Deferred } from '../../../core/async/abort.ts'
import { asError, IncompatibleVersion, InvalidArgument } from '../../../core/errors.ts'
import { toErrorKind } from './errors.ts'
import type { RedisLocation } from './place.ts'

type Driver = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>
type Client = Redis | Cluster

/** A script, and what Redis calls it. */
export interface Script {
  readonly lua: string
  readonly sha: string
}

export type Argument = string | Buffer

export interface RedisConnectionOptions {
  readonly location: RedisLocation
  readonly channel: string
  /** How long an answer may take, in milliseconds. */
  readonly timeoutMs: number
  /** Something was published. */
  readonly onMessage: (message: Buffer) => void
  readonly signal: AbortSignal
}

export function script(lua: string): Script {
  return { lua, sha: createHash('sha1').update(lua).digest('hex') }
}

/** @throws InvalidArgument saying what to install */
export async function loadDriver({ uri }: RedisLocation): Promise<Driver> {
  try {
    return await import('ioredis')
  } catch (cause) {
    throw new InvalidArgument(`${uri} needs the ioredis package: install ioredis@5`, { cause })
  }
}

/** Before 6.2 a script's writes and its clock do not go together in every setting. */
const MIN_SERVER_VERSION = [6, 2] as const

/** @throws IncompatibleVersion */
export function assertVersion(info: string): void {
  const [, version = '', major, minor] = /^redis_version:((\d+)\.(\d+)\S*)/m.exec(info) ?? []
  if (version === '' || Number(major) > MIN_SERVER_VERSION[0]) return
  if (Number(major) === MIN_SERVER_VERSION[0] && Number(minor) >= MIN_SERVER_VERSION[1]) return
  throw new IncompatibleVersion(
    `Redis ${version} is too old for a board; it takes ${MIN_SERVER_VERSION.join('.')} or newer`,
  )
}

export class RedisConnection {
  readonly #commands: Client
  readonly #subscriber: Client
  readonly #timeoutMs: number
  readonly #broken: Deferred<Error> = createDeferred()
  readonly #waiting = new Set<(error: Error) => void>()
  #closeReason: Error | undefined

  private constructor(clients: { commands: Client; hearing: Client }, options: RedisConnectionOptions) {
    this.#commands = clients.commands
    this.#subscriber = clients.hearing
    this.#timeoutMs = options.timeoutMs
    for (const client of new Set([this.#commands, this.#subscriber])) {
      // The last of these says why it was closed.
      client.on('error', (error: Error) => {
        this.#closeReason = error
      })
      client.on('end', () => this.disconnect(this.#closeReason ?? new Error('the connection was closed')))
    }
    this.#subscriber.on('messageBuffer', (_: Buffer, message: Buffer) => options.onMessage(message))
  }

  /** @throws what the driver says, or what the server answered */
  static async open(driver: Driver, options: RedisConnectionOptions): Promise<RedisConnection> {
    const clients = createClients(driver, options)
    const connection = new RedisConnection(clients, options)
    const stop = () => connection.disconnect(options.signal.reason)
    options.signal.addEventListener('abort', stop, { once: true })
    try {
      options.signal.throwIfAborted()
      await Promise.race([connection.#open(options), connection.broken.then((why) => Promise.reject(why))])
      return connection
    } catch (error) {
      connection.disconnect(asError(error))
      throw connection.#closeReason ?? error
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
      this.command(command, what, String(keys.length), ...keys, ...(typeof args === 'function' ? args() : args))
    try {
      return await send('evalsha', sha)
    } catch (error) {
      // What is not known was not run.
      if (toErrorKind(error) !== 'forgotten') throw error
      return send('eval', lua)
    }
  }

  command(command: string, ...args: Argument[]): Promise<unknown> {
    return this.#withTimeout(this.#commands.callBuffer(command, ...args))
  }

  /** Idempotent. What waits for an answer fails at once, whatever becomes of the sockets. */
  disconnect(why: Error): void {
    this.#broken.resolve(why)
    for (const fail of this.#waiting) fail(why)
    this.#waiting.clear()
    this.#commands.disconnect()
    this.#subscriber.disconnect()
  }

  async #open({ location, channel }: RedisConnectionOptions): Promise<void> {
    const clients = [...new Set([this.#commands, this.#subscriber])]
    await this.#withTimeout(Promise.all(clients.map((client) => client.connect())))
    await this.#select(location)
    await this.#withTimeout(this.#subscriber.subscribe(channel))
    assertVersion(String(await this.command('info', 'server')))
  }

  /** Left to the driver, a refusal would be overheard, and all be done in database 0, which is somebody else's. */
  async #select({ db, uri }: RedisLocation): Promise<void> {
    if (db === 0) return
    await this.command('select', String(db)).catch((cause: Error) => {
      if (toErrorKind(cause) !== 'odd') throw cause
      throw new InvalidArgument(`${uri}: there is no database ${db} on this server (${cause.message})`, { cause })
    })
  }

  #withTimeout(answer: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => this.disconnect(new Error(`no answer within ${this.#timeoutMs} ms`)),
        this.#timeoutMs,
      )
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
        const complaint = toErrorKind(error)
        if (complaint === undefined || complaint === 'away' || complaint === 'denied') this.disconnect(error)
      })
    })
  }
}

/** Nothing is tried again, queued or sent elsewhere by the driver itself. */
function createClients(
  { Redis, Cluster }: Driver,
  { location, timeoutMs }: RedisConnectionOptions,
): {
  commands: Client
  hearing: Client
} {
  const { kind, hosts, master, credentials, tls } = location
  const user = credentials?.user
  const secure = tls && { ...tls, ca: tls.ca as string | Buffer | (string | Buffer)[] }
  const usual: RedisOptions = {
    lazyConnect: true,
    connectTimeout: timeoutMs,
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
    ...(secure ? { tls: secure } : {}),
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
    // The sentinels as well: whoever answers for them names the host that the password is sent to.
    ...(secure ? { sentinelTLS: secure, enableTLSForSentinelMode: true } : {}),
  }
  const [{ host, port }] = hosts
  const options = { ...usual, ...(kind === 'sentinel' ? sentinel : { host, port }) }
  return { commands: new Redis(options), hearing: new Redis(options) }
}
