/**
 * A connection is opened once, used until the first fault, and never repaired. To reconnect, the session opens another one:
 * so the driver never sends a command again, or to another server, without our knowledge.
 *
 * It has a client for commands and, while it receives any channel, a second one; in a cluster one client does both. If either breaks, both are
 * closed. An answer that does not arrive in time also breaks the connection, because a connection that receives nothing looks like an idle one.
 */
import { createDeferred, type Deferred } from '../../../../core/async/abort.ts'
import { asError, IncompatibleVersion, InvalidArgument, isError } from '../../../../core/errors.ts'
import { monotonic, startTimer } from '../../../../core/time.ts'
import { type Client, type ClientOptions, type Clients, createClients, type Driver } from './clients.ts'
import { toErrorKind } from './errors.ts'
import type { RedisLocation } from './location.ts'
import type { Script } from './scripts.ts'

export type Argument = string | Buffer

export interface RedisConnectionOptions extends ClientOptions {
  /** Called with each message of a channel. */
  readonly onMessage: (channel: string, message: Buffer) => void
  readonly signal: AbortSignal
}

/** The oldest supported version: before 6.2, some settings forbid a script to read the clock and then write. */
const MIN_SERVER_VERSION = [6, 2] as const

/** Checks the version and the mode of the server. @throws IncompatibleVersion; InvalidArgument for a sentinel, which cannot run scripts */
export function assertServer(info: string, uri: string): void {
  if (/^redis_mode:sentinel/m.test(info))
    throw new InvalidArgument(`${uri}: this is a sentinel, not a Redis; write redis+sentinel://host:26379/NAME/0`)
  const [, version = '', major, minor] = /^redis_version:((\d+)\.(\d+)\S*)/m.exec(info) ?? []
  if (version === '' || Number(major) > MIN_SERVER_VERSION[0]) return
  if (Number(major) === MIN_SERVER_VERSION[0] && Number(minor) >= MIN_SERVER_VERSION[1]) return
  throw new IncompatibleVersion(
    `Redis ${version} is too old for a board; use Redis ${MIN_SERVER_VERSION.join('.')} or newer`,
  )
}

export class RedisConnection {
  readonly #options: RedisConnectionOptions
  readonly #commands: Client
  readonly #createSubscriber: () => Client
  #subscriber: Client | undefined
  /** The channels whose messages are received, or will be once they are subscribed. */
  readonly #channels = new Set<string>()
  /** Resolves when the client of the subscription is connected. */
  #subscriberReady: Promise<unknown> = Promise.resolve()
  readonly #timeoutMs: number
  readonly #broken: Deferred<Error> = createDeferred()
  /** What fails the commands that are not answered, each with its latest time on the monotonic clock, the oldest first. */
  readonly #waiting = new Map<(error: Error) => void, number>()
  /** The timer for the oldest command. It is not stopped by the answer: the next command needs none of its own then. */
  #timer: NodeJS.Timeout | undefined
  #closeReason: Error | undefined
  #eviction: string | undefined
  #isClosed = false

  private constructor(clients: Clients, options: RedisConnectionOptions) {
    this.#options = options
    this.#commands = clients.commands
    this.#createSubscriber = clients.createSubscriber
    this.#timeoutMs = options.timeoutMs
    this.#listenTo(this.#commands)
  }

  /** Opens a connection. @throws the error of the driver or of the server */
  static async open(driver: Driver, options: RedisConnectionOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(createClients(driver, options), options)
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

  /** The policy by which the server evicts keys when its memory is full; undefined if it evicts none. */
  get eviction(): string | undefined {
    return this.#eviction
  }

  /** Resolves with the reason when the connection is broken. */
  get broken(): Promise<Error> {
    return this.#broken.promise
  }

  /**
   * Runs a script. Sends its text if the server does not know it yet; other commands may have been sent before that second
   * attempt, so arguments that depend on the moment of sending are given as a function. Returns bytes, numbers, null and lists.
   */
  async run(
    script: Script,
    keys: readonly string[],
    args: readonly Argument[] | (() => readonly Argument[]),
  ): Promise<unknown> {
    const { lua, sha } = script.load()
    const send = (command: string, what: string) =>
      this.command(command, what, String(keys.length), ...keys, ...(typeof args === 'function' ? args() : args))
    try {
      return await send('evalsha', sha)
    } catch (error) {
      // A script that the server does not know was not run.
      if (toErrorKind(error) !== 'forgotten') throw error
      return send('eval', lua)
    }
  }

  command(command: string, ...args: Argument[]): Promise<unknown> {
    return this.#withTimeout(this.#commands.callBuffer(command, ...args))
  }

  /** Receives the messages of the channel from now on. @throws the error of the driver or of the server */
  async subscribe(channel: string): Promise<void> {
    if (this.#isClosed) throw await this.#broken.promise
    this.#channels.add(channel)
    try {
      this.#subscriber ??= this.#openSubscriber()
      const subscriber = this.#subscriber
      await this.#subscriberReady
      // A refusal is not thrown here, because it would close the connection: a user without the right to SUBSCRIBE can still post.
      const refused = await this.#withTimeout(subscriber.subscribe(channel).catch(asRefusal))
      if (isError(refused)) throw refused
    } catch (error) {
      await this.unsubscribe(channel)
      throw error
    }
  }

  /**
   * Ends the subscription. The client of the last one is closed: servers close idle clients, which would break the connection. An
   * error does not matter, since messages of the channel are ignored from now on; a user may lack the right to UNSUBSCRIBE.
   */
  async unsubscribe(channel: string): Promise<void> {
    const subscriber = this.#subscriber
    if (!this.#channels.delete(channel) || !subscriber) return
    if (this.#channels.size > 0 || subscriber === this.#commands) {
      await subscriber.unsubscribe(channel).catch(() => undefined)
      return
    }
    this.#subscriber = undefined
    subscriber.removeAllListeners('end')
    subscriber.disconnect()
  }

  #openSubscriber(): Client {
    const subscriber = this.#createSubscriber()
    if (subscriber !== this.#commands) {
      this.#listenTo(subscriber)
      this.#subscriberReady = this.#withTimeout(subscriber.connect())
    }
    subscriber.on('messageBuffer', (from: Buffer, message: Buffer) => {
      const channel = from.toString()
      if (this.#channels.has(channel)) this.#options.onMessage(channel, message)
    })
    return subscriber
  }

  /** Closes both clients. Pending commands fail at once, without waiting for the sockets. Idempotent. */
  disconnect(why: Error): void {
    // Each command that fails calls this. Each call of the driver's `disconnect` adds a listener to the socket, so it is called only once.
    if (this.#isClosed) return
    this.#isClosed = true
    this.#broken.resolve(why)
    clearTimeout(this.#timer)
    for (const fail of this.#waiting.keys()) fail(why)
    this.#waiting.clear()
    this.#commands.disconnect()
    this.#subscriber?.disconnect()
  }

  #listenTo(client: Client): void {
    // The last error is the reason of the close.
    client.on('error', (error: Error) => {
      this.#closeReason = error
    })
    client.on('end', () => this.disconnect(this.#closeReason ?? new Error('the connection was closed')))
  }

  async #open({ location }: RedisConnectionOptions): Promise<void> {
    await this.#withTimeout(this.#commands.connect())
    await this.#select(location)
    const info = String(await this.command('info'))
    assertServer(info, location.uri)
    this.#eviction = /^maxmemory_policy:(?!noeviction)(\S+)/m.exec(info)?.[1]
  }

  /**
   * Selects the database. The driver's own selection ignores a refusal, and all commands would run in database 0, which may
   * belong to another application.
   */
  async #select({ db, uri }: RedisLocation): Promise<void> {
    if (db === 0) return
    await this.command('select', String(db)).catch((cause: Error) => {
      if (toErrorKind(cause) !== 'odd') throw cause
      throw new InvalidArgument(`${uri}: this server has no database ${db} (${cause.message})`, { cause })
    })
  }

  /** The socket keeps the process alive while an answer is awaited. */
  #startTimer(ms: number): NodeJS.Timeout {
    return startTimer(() => this.#checkOldest(), ms).unref()
  }

  #checkOldest(): void {
    this.#timer = undefined
    const [until] = this.#waiting.values()
    if (this.#isClosed || until === undefined) return
    const leftMs = Math.ceil(until - monotonic())
    if (leftMs > 0) this.#timer = this.#startTimer(leftMs)
    else this.disconnect(new Error(`no answer within ${Math.round(this.#timeoutMs)} ms`))
  }

  #withTimeout(answer: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => {
        this.#waiting.delete(fail)
        reject(error)
      }
      this.#waiting.set(fail, monotonic() + this.#timeoutMs)
      this.#timer ??= this.#startTimer(this.#timeoutMs)
      const done = (value: unknown) => {
        this.#waiting.delete(fail)
        resolve(value)
      }
      answer.then(done, (error: Error & { command?: unknown }) => {
        // The command may contain secrets, and errors are printed.
        delete error.command
        fail(error)
        const kind = toErrorKind(error)
        if (kind === undefined || kind === 'away' || kind === 'denied') this.disconnect(error)
      })
    })
  }
}

/** Returns the refusal of a command; throws any other error. */
function asRefusal(error: Error): Error {
  if (toErrorKind(error) === 'denied') return error
  throw error
}
