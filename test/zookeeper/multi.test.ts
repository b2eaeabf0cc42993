import { describe, expect, expectTypeOf, test } from 'vitest'
import { BadVersion, NodeExists, NoNode, op, type Stat } from '../../src/zookeeper/index.ts'
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
    expectTypeOf(results).toEqualTypeOf<
      [undefined, Stat, undefined, { readonly path: string }, { readonly path: string }, undefined]
    >()
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
    expectTypeOf(results).toEqualTypeOf<{ readonly path: string }[]>()
    expect(results.map((result) => result.path)).toEqual(paths)
  })
})
