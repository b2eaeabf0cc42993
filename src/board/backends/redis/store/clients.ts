/** Imports the driver, and creates its clients: for a server, for the master that sentinels know, or for a cluster. */
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis'
import { InvalidArgument } from '../../../../core/errors.ts'
import type { RedisLocation } from './location.ts'

export type Driver = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>
export type Client = Redis | Cluster

export interface ClientOptions {
  readonly location: RedisLocation
  /** The time limit for an answer, in milliseconds. */
  readonly timeoutMs: number
  /** Called when a password was given, and the server has answered that it needs none. */
  readonly onUnneededPassword?: () => void
}

/**
 * Imports the driver.
 *
 * @throws InvalidArgument naming the package to install
 */
export async function loadDriver({ uri }: RedisLocation): Promise<Driver> {
  try {
    return await import('ioredis')
  } catch (cause) {
    throw new InvalidArgument(`${uri} needs the ioredis package: install ioredis@5`, { cause })
  }
}

export interface Clients {
  readonly commands: Client
  /** Creates the client of a subscription; a cluster's client does both. */
  readonly createSubscriber: () => Client
}

/** Creates the clients with all retries, queues and redirections of the driver disabled. */
export function createClients({ Redis, Cluster }: Driver, options: ClientOptions): Clients {
  const { location, timeoutMs, onUnneededPassword } = options
  const { kind, hosts, socket, master, credentials, tls } = location
  const user = credentials?.user
  const secure = tls && { ...tls, ca: tls.ca as string | Buffer | (string | Buffer)[] }
  const usual: RedisOptions = {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    enableOfflineQueue: false,
    // The check prints a warning for users without the right to INFO; scripts also report that a server is loading.
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
    const clusterOptions: ClusterOptions = {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: () => null,
      maxRedirections: 0,
      redisOptions,
    }
    const cluster = new Cluster([...hosts], clusterOptions)
    cluster.on('+node', (node: Redis) => ignoreUnneededPassword(node, onUnneededPassword))
    return { commands: cluster, createSubscriber: () => cluster }
  }
  const sentinel: RedisOptions = {
    sentinels: [...hosts],
    name: master,
    sentinelRetryStrategy: () => null,
    // TLS protects the connections to the sentinels, too: their answer names the host that receives the password.
    ...(secure ? { sentinelTLS: secure, enableTLSForSentinelMode: true } : {}),
  }
  const [{ host, port }] = hosts
  const server = socket === undefined ? { host, port } : { path: socket }
  const single = { ...usual, ...(kind === 'sentinel' ? sentinel : server) }
  const create = () => ignoreUnneededPassword(new Redis(single), onUnneededPassword)
  return { commands: create(), createSubscriber: create }
}

/** The errors of servers that need no password. */
const UNNEEDED_PASSWORD = /no password is set|without any password configured for the default user/

/** Lets the client continue if the server needs no password. The driver does so, too, but prints a line on the terminal. */
function ignoreUnneededPassword(client: Redis, onUnneeded: () => void = () => undefined): Redis {
  const auth = client.auth.bind(client)
  return Object.assign(client, {
    auth: (credentials: string, answer: (error?: Error | null) => void) =>
      auth(credentials, (error) => {
        const isUnneeded = UNNEEDED_PASSWORD.test(error?.message ?? '')
        if (isUnneeded) onUnneeded()
        answer(isUnneeded ? null : error)
      }),
  })
}
