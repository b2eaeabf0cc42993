import { describe, expect, test } from 'vitest'
import { count } from '../../support/counts.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { startNode } from '../../support/node-process.ts'

const MEGABYTE = 1_024 * 1_024

describe.skipIf(!zookeeperHosts)('the heap', () => {
  test('is after very many operations and events what it was after a few', async () => {
    const operations = count({ test: 10_000, long: 200_000 })
    const events = count({ test: 1_000, long: 10_000 })
    const script = new URL('./memory-child.ts', import.meta.url)
    const args = [zookeeperHosts, namespace(), String(operations), String(events)]
    await using child = await startNode(script, args, { flags: ['--expose-gc'] })
    const [, grown] = /^grown by (-?\d+)$/.exec(await child.says(/^grown by /)) ?? []
    console.log(`${operations} operations and ${events} events: the heap has grown by ${grown} bytes`)
    expect(Number(grown)).toBeLessThan(4 * MEGABYTE)
    expect(await child.ended).toBe(0)
  })
})
