import { describe, expect, expectTypeOf, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { BadVersion, type CreatedInMulti, NodeExists, NoNode, op, type Stat } from '../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { connected, failureOf, text } from './clients.ts'

describe.skipIf(!zookeeperHosts)('a multi', () => {
  test('does all of it in one transaction, in order', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path, Buffer.from('0'))
    const { zxid, results } = await client.multi([
      op.check(path, { version: 0 }),
      op.setData(path, Buffer.from('1'), { version: 0 }),
      op.check(path, { version: 1 }),
      op.create(`${path}/child`, Buffer.from('c'), { ephemeral: true }),
      op.create(`${path}/s-`, null, { sequential: true }),
      op.delete(`${path}/child`, { version: 0 }),
    ])
    expectTypeOf(results).toEqualTypeOf<[undefined, Stat, undefined, CreatedInMulti, CreatedInMulti, undefined]>()
    expect(results[1]).toMatchObject({ version: 1, mzxid: zxid })
    expect(results[3].path).toBe(`${path}/child`)
    expect(results[4].path).toBe(`${path}/s-0000000001`)
    expect([results[0], results[2], results[5]]).toEqual([undefined, undefined, undefined])
    expect((await client.getChildren(path)).names).toEqual(['s-0000000001'])
    expect((await client.exists(results[4].path))?.czxid).toBe(zxid)
    expect(text((await client.getData(path)).data)).toBe('1')
  })

  test('does none of it when one operation is refused, and says which', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path)
    const tried = [
      [[op.create(`${path}/a`, null), op.check(`${path}/none`), op.delete(path)], NoNode, 1, `${path}/none`],
      [[op.create(path, null)], NodeExists, 0, path],
      [[op.setData(path, null), op.create(`${path}/a`, null), op.delete(path, { version: 7 })], BadVersion, 2, path],
    ] as const
    for (const [ops, type, index, culprit] of tried) {
      const error = await failureOf(client.multi(ops))
      expect(error).toBeInstanceOf(type)
      expect(error).toMatchObject({ index, path: culprit, outcome: 'refused' })
    }
    expect(await client.exists(path)).toMatchObject({ version: 0, numChildren: 0 })
  })

  test('may be empty, and may be of a length known only at run time', async () => {
    await using client = await connected()
    const path = namespace()
    expect((await client.multi([])).results).toEqual([])
    await client.create(path)
    const paths = Array.from({ length: 2_000 }, (_, index) => `${path}/${index}`)
    const { results } = await client.multi(paths.map((each) => op.create(each, null)))
    expectTypeOf(results).toEqualTypeOf<CreatedInMulti[]>()
    expect(results.map((result) => result.path)).toEqual(paths)
  })
})

describe.skipIf(!zookeeperHosts)('a multi of all kinds of znodes', () => {
  test('answers with the path, and with the Stat where the server returns it', async () => {
    await using client = await connected()
    const path = namespace()
    const { zxid, results } = await client.multi([
      op.create(path, null),
      op.create(`${path}/c`, Buffer.from('c'), { container: true }),
      op.create(`${path}/t`, null, { ttl: '1h' }),
      op.create(`${path}/t-`, null, { ttl: '1h', sequential: true }),
      op.create(`${path}/e-`, null, { ephemeral: true, sequential: true }),
    ])
    const expected = [path, `${path}/c`, `${path}/t`, `${path}/t-0000000002`, `${path}/e-0000000003`]
    expect(results.map((result) => result.path)).toEqual(expected)
    expect(results[1].stat).toMatchObject({ czxid: zxid, dataLength: 1 })
    expect(results[2].stat).toMatchObject({ czxid: zxid, dataLength: 0 })
    for (const each of expected) expect((await client.exists(each))?.czxid).toBe(zxid)
  })
})

describe.skipIf(!zookeeperHosts)('a multiRead', () => {
  test('answers each read, or says why not', async () => {
    await using client = await connected()
    const path = namespace()
    await client.create(path, Buffer.from('d'))
    await client.create(`${path}/hidden`, null, { acl: [{ permissions: 16, scheme: 'world', id: 'anyone' }] })
    const { stat } = await client.create(`${path}/a`)
    const { zxid, results } = await client.multiRead([
      op.getData(path),
      op.getChildren(path),
      op.getData(`${path}/none`),
      op.getData(`${path}/hidden`),
      op.getChildren(`${path}/hidden`),
      op.getData(`${path}/a`),
    ])
    const [data, children, none, hidden, hiddenChildren, empty] = results
    expect(text(data.data ?? null)).toBe('d')
    expect(data.stat).toMatchObject({ numChildren: 2 })
    expect(children.names?.sort()).toEqual(['a', 'hidden'])
    expect(none.error).toBeInstanceOf(NoNode)
    expect(none.error).toMatchObject({ path: `${path}/none`, index: 2, outcome: 'refused' })
    expect([hidden.error, hiddenChildren.error].map((error) => error?.name)).toEqual(['NoAuth', 'NoAuth'])
    expect(empty).toEqual({ data: null, stat })
    expect(zxid).toBeGreaterThanOrEqual(stat.czxid)
  })

  test('may be empty or long', async () => {
    await using client = await connected()
    expect((await client.multiRead([])).results).toEqual([])
    const paths = Array.from({ length: 1_000 }, () => op.getData('/'))
    const { results } = await client.multiRead(paths)
    expect(results.filter(({ error }) => !error)).toHaveLength(1_000)
  })

  test('takes no write, and a multi no read', async () => {
    await using client = await connected()
    expect(await failureOf(client.multiRead([op.delete('/a')] as never))).toBeInstanceOf(InvalidArgument)
    expect(await failureOf(client.multi([op.getData('/a')] as never))).toBeInstanceOf(InvalidArgument)
  })
})
