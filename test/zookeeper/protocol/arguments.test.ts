/** What callers without a compiler get wrong is refused at once, by name, and never sent as something else. */
import { describe, expect, test } from 'vitest'
import {
  InvalidArgument,
  idempotentDelete,
  NotSent,
  op,
  versionedSetData,
  ZooKeeper,
} from '../../../src/zookeeper/index.ts'

/** As from JavaScript. */
type Loose = Record<string, (...args: unknown[]) => Promise<unknown>>

const client = new ZooKeeper({ hosts: '127.0.0.1:1' })
const loose: Loose = new Proxy({}, { get: (_, name: string) => Reflect.get(client, name).bind(client) })
const ask = (method: string, ...args: unknown[]) => Promise.resolve(loose[method]?.(...args))
const WORLD = { scheme: 'world', id: 'anyone' }
const handler = { events: () => undefined, gap: () => undefined }

describe('a call is refused', () => {
  test.each<[string, unknown[], RegExp]>([
    ['delete', ['/a', { version: Number.NaN }], /version must be .*got NaN/],
    ['delete', ['/a', { version: 1.5 }], /version must be .*1\.5/],
    ['delete', ['/a', { version: -5 }], /version must be .*got -5/],
    ['setData', ['/a', null, { version: 2 ** 40 }], /version must be .*1099511627776/],
    ['setData', ['/a', null, { version: '3' }], /version must be .*"3"/],
    ['setACL', ['/a', [], { aversion: 0.5 }], /version/],
    ['setData', ['/a', null, { verison: 3 }], /unknown option "verison"; did you mean version/],
    ['create', ['/a', null, { ephemerall: true }], /did you mean ephemeral/],
    ['create', ['/a', null, { acl: [{ ...WORLD, permissions: 32 }] }], /acl: permissions must be .*0 to 31, got 32/],
    ['create', ['/a', null, { acl: [{ ...WORLD, permissions: 'ALL' }] }], /acl: permissions must be .*"ALL"/],
    ['create', ['/a', null, { acl: { ...WORLD, permissions: 1 } }], /acl takes a list/],
    ['create', ['/a', null, { acl: [{ permissions: 1 }] }], /acl: .*scheme/],
    ['create', ['/a', null, { acl: ['world:anyone'] }], /acl: permissions/],
    ['setACL', ['/a', [{ ...WORLD, permissions: -1 }]], /acl: permissions/],
    ['create', [undefined], /path must be a text .* got undefined/],
    ['getData', [17], /path must be a text .* got number/],
    ['getData', ['/a', { watch: true }], /watch \/a: the watch must be a function/],
    ['watch', ['/a', { mode: 'recursiv' }, handler], /mode: .*did you mean recursive/],
    ['watch', ['/a', {}, handler], /mode: .*undefined/],
    ['watch', ['/a', undefined, handler], /watch \/a: its options have to be an object/],
    ['watch', ['/a', { mode: 'recursive' }], /two functions/],
    ['watch', ['/a', { mode: 'recursive' }, () => undefined], /two functions/],
    ['removeWatches', ['/a', { kind: 'child' }], /kind: .*child/],
    ['multi', [undefined], /multi takes a list/],
    ['multiRead', [{}], /multiRead takes a list, got an object/],
    ['reconfig', [{ leaving: [1], version: 3 }], /bigint/],
    ['reconfig', [{ leaving: 1 }], /reconfig takes a list/],
    ['connect', [{ timout: '1s' }], /did you mean timeout/],
    ['setData', ['/a', null, { version: 3n }], /version must be .*got 3n/],
    ['setData', ['/a', null, { session: 123 }], /^(?!.*123).*session .*zookeeper\.session\.id\) must be a bigint/],
    ['setData', ['/a', null, { session: { id: 1n } }], /session .*must be a bigint, got a object/],
    ['getData', ['/a', { signal: new AbortController() }], /signal must be an AbortSignal/],
    ['multi', [[null]], /multi: operation 0 is not an operation/],
    [
      'addAuth',
      ['digest', new Uint8Array(1_048_576)],
      /auth of the scheme digest must have at most 1048575 bytes, .*got 10486\d\d/,
    ],
    ['multiRead', [[op.getData('/a'), undefined]], /multiRead: operation 1 is not an operation/],
  ])('%s of %o', async (method, args, message) => {
    const refused = ask(method, ...args)
    await expect(refused).rejects.toBeInstanceOf(InvalidArgument)
    await expect(refused).rejects.toThrow(message)
    expect(client.state).toBe('new')
  })

  test('an operation of a multi, where it is made or where it is asked', async () => {
    expect(() => op.check('/a', JSON.parse('{"versoin":3}'))).toThrow(/did you mean version/)
    expect(() => op.create('/a', null, JSON.parse('{"sequental":true}'))).toThrow(/did you mean sequential/)
    for (const wrong of [op.check('/a', { version: 1.5 }), op.setData('/a', null, { version: -2 })]) {
      await expect(client.multi([wrong])).rejects.toBeInstanceOf(InvalidArgument)
    }
  })

  test.each<[object, RegExp]>([
    [{ verison: 3 }, /did you mean version/],
    [{ czxid: 3 }, /czxid must be a bigint/],
    [{ version: 3, session: 5 }, /session/],
  ])('a delete with %j would delete another znode', async (options, message) => {
    const refused = idempotentDelete(client, '/a', options)
    await expect(refused).rejects.toBeInstanceOf(InvalidArgument)
    await expect(refused).rejects.toThrow(message)
  })

  test.each([[{}], [{ version: -1 }], [{ version: 3n }], [undefined]])(
    'a compare and set that has seen %o would write whatever is there',
    async (seen) => {
      const refused = Reflect.apply(versionedSetData, undefined, [client, '/a', null, seen])
      await expect(refused).rejects.toThrow(/the version that was seen must be a whole number/)
    },
  )

  test('a signal that is none, and the client is closed in an orderly way', async () => {
    const other = new ZooKeeper({ hosts: '127.0.0.1:1' })
    const options = { signal: new AbortController() }
    await expect(Reflect.apply(other.connect, other, [options])).rejects.toBeInstanceOf(InvalidArgument)
    expect(other.state).toBe('closed')
  })

  test('but a Stat may be given for its version', async () => {
    const stat = { czxid: 1n, mzxid: 2n, pzxid: 3n, version: 4, cversion: 5, aversion: 6, numChildren: 7 }
    await expect(client.setData('/a', null, stat)).rejects.toBeInstanceOf(NotSent)
  })

  test('but not for what an object has beside its options', async () => {
    const { signal, abort } = { signal: AbortSignal.abort(new Error('enough')), abort: () => undefined }
    const options = { signal, abort, job: 'of mine' }
    await expect(client.delete('/a', options)).rejects.toThrow('enough')
  })

  test('an event that there is not', () => {
    expect(() => Reflect.apply(client.on, client, ['stat', () => undefined])).toThrow(/did you mean state/)
  })
})
