/** What the compiler must accept and refuse of the ZooKeeper client. Checked by `tsc --noEmit`; nothing here is ever run. */
import {
  type Created,
  type CreatedInMulti,
  type Duration,
  type HandlerFault,
  type Logger,
  op,
  type ReadData,
  type ReadResult,
  type Stat,
  type WatchEvent,
  type WatchLost,
  ZooKeeper,
  type ZooKeeperError,
} from '../../src/zookeeper/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
declare function typeOf<T>(value: T): { is<U>(answer: Same<T, U>): void }
declare const zookeeper: ZooKeeper
declare const condition: boolean

export async function kinds(): Promise<void> {
  await zookeeper.create('/a', null, { ephemeral: true, sequential: true })
  await zookeeper.create('/a', null, { container: true, acl: [] })
  await zookeeper.create('/a', null, { ttl: '5m', sequential: true })
  await zookeeper.create('/a', null, condition ? { ephemeral: true } : {})
  const made: Created = await zookeeper.create('/a', null, { ephemeral: condition, sequential: condition })
  typeOf(made.stat).is<Stat>(true)
  op.create('/a', null, { ephemeral: condition, sequential: condition })
  await zookeeper.create('/a', null, { container: true, ephemeral: false })
  // @ts-expect-error a container cannot be ephemeral
  await zookeeper.create('/a', null, { container: true, ephemeral: true })
  // @ts-expect-error a container cannot be sequential
  await zookeeper.create('/a', null, { container: true, sequential: true })
  // @ts-expect-error a container has no TTL
  await zookeeper.create('/a', null, { container: true, ttl: 5 })
  // @ts-expect-error what goes with the session needs no TTL
  await zookeeper.create('/a', null, { ephemeral: true, ttl: 5 })
  // @ts-expect-error the same in a multi
  op.create('/a', null, { ephemeral: true, ttl: 5 })
  // @ts-expect-error no unit
  await zookeeper.create('/a', null, { ttl: '5 minutes' })
}

export async function options(log: Logger, timeout: Duration): Promise<void> {
  new ZooKeeper({ hosts: 'a', log, sessionTimeout: timeout })
  zookeeper.on('error', (fault) => typeOf(fault).is<HandlerFault>(true))
  // @ts-expect-error there is no such event
  zookeeper.on('stat', () => undefined)
}

export async function transactions(): Promise<void> {
  const { results } = await zookeeper.multi([
    op.create('/a', null, { ttl: 5 }),
    op.setData('/a', null),
    op.check('/a'),
    op.delete('/a'),
  ])
  typeOf(results).is<[CreatedInMulti, Stat, undefined, undefined]>(true)
  const many = await zookeeper.multi(['/a', '/b'].map((path) => op.setData(path, null)))
  typeOf(many.results).is<Stat[]>(true)
  const mixed = await zookeeper.multi(['/a'].map((path) => (condition ? op.setData(path, null) : op.delete(path))))
  typeOf(mixed.results).is<(Stat | undefined)[]>(true)
  // @ts-expect-error a multi does not read
  await zookeeper.multi([op.getData('/a')])
}

export async function reads(): Promise<void> {
  const { results } = await zookeeper.multiRead([op.getData('/a'), op.getChildren('/b')])
  typeOf(results).is<[ReadResult<ReadData>, ReadResult<{ readonly names: string[] }>]>(true)
  const [data, children] = results
  if (data.error) typeOf(data.error).is<ZooKeeperError>(true)
  else typeOf(data.stat).is<Stat>(true)
  if (!children.error) typeOf(children.names).is<string[]>(true)
  // @ts-expect-error it may have been refused
  data.stat.version
  // @ts-expect-error a multiRead does not write
  await zookeeper.multiRead([op.delete('/a')])
}

export async function watches(): Promise<void> {
  await zookeeper.exists('/a', { watch: (event) => typeOf(event).is<WatchEvent | WatchLost>(true) })
  // @ts-expect-error a function, not a flag
  await zookeeper.exists('/a', { watch: true })
  await zookeeper.removeWatches('/a', { kind: 'children' })
  // @ts-expect-error no such kind
  await zookeeper.removeWatches('/a', { kind: 'persistent' })
}
