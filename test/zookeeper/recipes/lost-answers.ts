/** Writes whose answer never comes, for those that find out what became of them. */
import { createDeferred } from '../../../src/core/async/abort.ts'
import type { ExactlyOnceClient, ZooKeeper, ZooKeeperOptions } from '../../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startProxy, type TcpProxy } from '../../support/proxy.ts'
import { connected, portOf } from '../clients.ts'

export interface LostReplyServer extends AsyncDisposable {
  readonly proxy: TcpProxy
  readonly client: ZooKeeper
  /** Connected past the proxy. */
  readonly observer: ZooKeeper
  /** A znode that is there. */
  readonly path: string
}

export async function startLostReplyServer(options: Partial<ZooKeeperOptions> = {}): Promise<LostReplyServer> {
  const proxy = await startProxy({ port: portOf(zookeeperHosts) })
  const client = await connected({ hosts: proxy.hosts, ...options })
  const observer = await connected()
  const path = namespace()
  await observer.create(path, Buffer.from('0'))
  return {
    proxy,
    client,
    observer,
    path,
    [Symbol.asyncDispose]: async () => {
      await client.close()
      await observer.close()
      await proxy.close()
    },
  }
}

/** The next change of the znode or below it. */
export async function nextChange({ observer, path }: LostReplyServer): Promise<{ happened: Promise<void> }> {
  let told: () => void = () => undefined
  const happened = new Promise<void>((resolve) => {
    told = resolve
  })
  const watch = await observer.watch(path, { mode: 'recursive' }, { events: () => told(), gap: () => undefined })
  return { happened: happened.then(() => watch.remove()) }
}

/** The same client, but something happens right before it writes for the first time. */
function beforeWriting(client: ZooKeeper, happen: () => void): ExactlyOnceClient {
  let done = false
  const write = <A extends unknown[], R>(method: (...args: A) => R) => {
    return (...args: A): R => {
      if (!done) happen()
      done = true
      return method.apply(client, args)
    }
  }
  return {
    get state() {
      return client.state
    },
    get session() {
      return client.session
    },
    create: write(client.create),
    delete: write(client.delete),
    setData: write(client.setData),
    exists: client.exists.bind(client),
    getData: client.getData.bind(client),
    getChildren: client.getChildren.bind(client),
    sync: client.sync.bind(client),
  }
}

/** Begins a write whose answer never comes, because the connection breaks: after it happened, or before it could. */
export async function losing<T>(
  lab: LostReplyServer,
  what: 'the answer' | 'the request',
  write: (client: ExactlyOnceClient) => Promise<T>,
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<Promise<T>[]> {
  const { client, proxy } = lab
  const change = what === 'the answer' ? await nextChange(lab) : undefined
  const asked = createDeferred()
  const breaking = beforeWriting(client, () => {
    proxy.mode = what === 'the answer' ? 'swallow-replies' : 'drop-requests'
    proxy.nextRequest().then(asked.resolve, asked.reject)
  })
  const writing = write(breaking)
  writing.catch(() => undefined)
  await (change?.happened ?? asked.promise)
  await meanwhile()
  proxy.mode = 'pass'
  proxy.resetAll()
  // In a list, because what an async function returns is awaited.
  return [writing]
}

export async function lost<T>(...args: Parameters<typeof losing<T>>): Promise<T> {
  const [writing] = await losing(...args)
  if (!writing) throw new Error('there is always one')
  return writing
}
