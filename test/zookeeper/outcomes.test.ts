import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ZooKeeperError } from '../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { startProxy } from '../support/proxy.ts'
import { connected, portOf } from './clients.ts'

/** Lets so many turns of the event loop pass. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe.skipIf(!zookeeperHosts)('outcomes', () => {
  test('are true, whenever the connection breaks', async () => {
    await using proxy = await startProxy({ port: portOf(zookeeperHosts) })
    await using client = await connected({ hosts: proxy.hosts })
    await using observer = await connected()
    const breaks = fc.array(fc.record({ creates: fc.integer({ min: 1, max: 40 }), after: fc.nat({ max: 6 }) }), {
      minLength: 1,
      maxLength: 6,
    })
    await fc.assert(
      fc.asyncProperty(breaks, async (rounds) => {
        const path = namespace()
        await observer.create(path)
        const done: string[] = []
        const outcomes: Record<string, string[]> = { 'not-sent': [], refused: [], unknown: [] }
        const asked: Promise<void>[] = []
        let name = 0
        for (const { creates, after } of rounds) {
          for (let create = 0; create < creates; create++) {
            const child = `n${name++}`
            const creating = client.create(`${path}/${child}`).then(
              () => void done.push(child),
              (error: unknown) => {
                if (!(error instanceof ZooKeeperError)) throw error
                outcomes[error.outcome]?.push(child)
              },
            )
            asked.push(creating)
          }
          await turns(after)
          proxy.resetAll()
        }
        await Promise.all(asked)
        await observer.sync(path)
        const there = new Set((await observer.getChildren(path)).names)
        expect(done.filter((child) => !there.has(child))).toEqual([])
        expect([outcomes['not-sent'], outcomes['refused']]).toEqual([[], []])
        expect(done.length + (outcomes['unknown']?.length ?? 0)).toBe(name)
      }),
      { numRuns: 8 },
    )
  })
})
