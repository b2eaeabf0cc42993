/** How a conductor is shown on the board while connections and sessions come and go. */
import { describe, expect, onTestFinished } from 'vitest'
import type { Entity } from '../../src/board/contract/index.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { type JobBoard, openPersistence, startConductor } from '../../src/index.ts'
import { zookeeperPlace } from '../board/boards.ts'
import { ProxiedBoard } from '../board/proxied-board.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { usual as test, variant } from '../variant.ts'
import { singleTaskFlow, startTestConductor } from './conducting.ts'

const fine = singleTaskFlow('fine', () => 1)

/** Resolves when the board is in the state. */
function comes(board: JobBoard, wanted: string): Promise<void> {
  const there = createDeferred()
  const off = board.on('state', ({ state }) => {
    if (state !== wanted) return
    off()
    there.resolve()
  })
  return there.promise
}

async function shown(board: JobBoard): Promise<Entity[]> {
  return board.entities('conductor')
}

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  variant('what ended while there was no connection is not shown for ever', async () => {
    await using setup = await ProxiedBoard.set()
    const { board, other, proxy } = setup
    const [reached, release] = [createDeferred(), createDeferred()]
    const slow = singleTaskFlow('slow', async () => {
      reached.resolve()
      await release.promise
    })
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [slow], name: 'one' })
    await other.post(slow, { n: 1 })
    await reached.promise
    const metadata = async () => (await shown(other))[0]?.metadata
    await expect.poll(metadata, { timeout: 10_000 }).toMatchObject({ state: 'busy', running: 1 })
    const [away, over] = [comes(board, 'disconnected'), createDeferred()]
    conductor.on('settled', () => over.resolve())
    proxy.mode = 'refuse'
    proxy.resetAll()
    await away
    conductor.pause()
    // Longer than it takes until what has changed is told.
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    proxy.mode = 'pass'
    await expect.poll(metadata, { timeout: 20_000 }).toMatchObject({ state: 'paused' })
    release.resolve()
    await over.promise
    await expect.poll(metadata, { timeout: 10_000 }).toMatchObject({ running: 0 })
  })

  test('one that stopped without a connection is gone when there is one again', async () => {
    await using setup = await ProxiedBoard.set()
    const { board, other, proxy } = setup
    const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [fine], name: 'one' })
    const away = comes(board, 'disconnected')
    proxy.mode = 'refuse'
    proxy.resetAll()
    await away
    await conductor.stop()
    expect(conductor.state).toBe('stopped')
    const back = comes(board, 'connected')
    proxy.mode = 'pass'
    await back
    await expect.poll(() => shown(other), { timeout: 10_000 }).toEqual([])
    await startTestConductor({ board, persistence: 'memory:', flows: [fine], name: 'one' })
  })

  test("a name that another took meanwhile stays the other's until it goes, and then comes back", async () => {
    const place = await zookeeperPlace()
    onTestFinished(() => place[Symbol.asyncDispose]())
    const [board, other] = [await place.open({ who: 'a' }), await place.open({ who: 'b' })]
    onTestFinished(async () => void (await Promise.all([board.close(), other.close()])))
    const persistence = await openPersistence('memory:')
    const conductor = await startTestConductor({ board, persistence, flows: [fine], name: 'one' })
    const messages: string[] = []
    conductor.on('error', ({ error }) => messages.push(error.message))
    let usurper: Awaited<ReturnType<typeof startConductor>> | undefined
    while (!usurper) {
      await place.expire(board)
      usurper = await startConductor({ board: other, persistence, flows: [fine], name: 'one' }).catch(() => undefined)
    }
    const who = async () => (await shown(other)).map(({ instance }) => instance)
    const [theirs] = await who()
    await expect.poll(() => messages.length, { timeout: 20_000 }).toBeGreaterThan(0)
    expect(messages[0]).toContain('registering conductor one: the name is in use')
    expect(await who()).toEqual([theirs])
    await usurper.stop()
    await expect.poll(who, { timeout: 20_000 }).toHaveLength(1)
    expect(await who()).not.toEqual([theirs])
    expect(messages).toHaveLength(1)
  })
})
