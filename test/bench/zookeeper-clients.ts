/** The clients that are compared, each in the way that is its fastest: callbacks where it has them. */
import { op, ZooKeeper } from '../../src/zookeeper/index.ts'
import { NATIVE_FOLDER } from '../support/native-package.ts'
import { requireFrom } from '../support/npm-folder.ts'
import { PEERS } from './peers-folder.ts'

/** Operations in flight, one by one. */
export const WIDTH = 500
/** Creates in one multi. */
export const MULTI = 100

export interface Figures {
  readonly perSecond: number
  /** Microseconds of processor time in the client's process, each. */
  readonly cpu: number
}

export interface Rates {
  readonly creates: Figures
  readonly reads: Figures
  readonly multis?: Figures
}

export type Done = (error?: unknown) => void

export interface Client {
  create(path: string, data: Buffer, done: Done): void
  read(path: string, done: Done): void
  createAll?(paths: readonly string[], data: Buffer, done: Done): void
  close(): Promise<void>
}

export const CLIENTS = {
  ours: 'this client',
  native: 'zookeeper 7.3.0 (the C client)',
  'node-zookeeper-client': 'node-zookeeper-client 1.1.3',
} as const

export type ClientName = keyof typeof CLIENTS

export const OPEN: Readonly<Record<ClientName, (hosts: string) => Promise<Client>>> = {
  ours: async (hosts) => {
    const client = new ZooKeeper({ hosts })
    await client.connect()
    return {
      create: (path, data, done) => void client.create(path, data).then(() => done(), done),
      read: (path, done) => void client.getData(path).then(() => done(), done),
      createAll: (paths, data, done) => {
        void client.multi(paths.map((path) => op.create(path, data))).then(() => done(), done)
      },
      close: () => client.close(),
    }
  },

  native: async (hosts) => {
    const Package = requireFrom(NATIVE_FOLDER, 'zookeeper') as new (config: object) => NativeApi
    const client = new Package({ connect: hosts, timeout: 10_000, debug_level: 0, host_order_deterministic: false })
    client.init({})
    await new Promise<void>((resolve) => client.on('connect', resolve))
    return {
      create: (path, data, done) => client.a_create(path, data, 0, (code) => done(code === 0 ? undefined : code)),
      read: (path, done) => client.a_get(path, false, (code) => done(code === 0 ? undefined : code)),
      close: async () => client.close(),
    }
  },

  'node-zookeeper-client': async (hosts) => {
    const api = requireFrom(PEERS, 'node-zookeeper-client') as PureApi
    const client = api.createClient(hosts, { sessionTimeout: 10_000 })
    await new Promise<void>((resolve) => {
      client.once('connected', resolve)
      client.connect()
    })
    return {
      create: (path, data, done) => client.create(path, data, done),
      read: (path, done) => client.getData(path, done),
      createAll: (paths, data, done) => {
        const transaction = client.transaction()
        for (const path of paths) transaction.create(path, data)
        transaction.commit(done)
      },
      close: async () => client.close(),
    }
  },
}

interface NativeApi {
  init(config: object): void
  on(event: 'connect', listener: () => void): void
  a_create(path: string, data: Buffer, flags: number, done: (code: number) => void): void
  a_get(path: string, watch: boolean, done: (code: number) => void): void
  close(): void
}

interface PureApi {
  createClient(hosts: string, options: { sessionTimeout: number }): PureClient
}

interface PureClient {
  once(event: 'connected', listener: () => void): void
  connect(): void
  create(path: string, data: Buffer, done: Done): void
  getData(path: string, done: Done): void
  transaction(): { create(path: string, data: Buffer): void; commit(done: Done): void }
  close(): void
}
