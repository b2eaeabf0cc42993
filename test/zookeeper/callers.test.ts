/** Who asked, in the stack of what went wrong. */
import { describe, expect, test } from 'vitest'
import { SessionExpired, type ZooKeeper, ZooKeeperError } from '../../src/zookeeper/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { connected, failureOf } from './clients.ts'

/** The stack of an error that comes from the server, and its class. */
async function stackOf(client: ZooKeeper): Promise<string> {
  const error = await failureOf(client.getData(`${namespace()}/nothing`))
  if (!(error instanceof ZooKeeperError)) throw error
  return error.stack ?? ''
}

describe.skipIf(!zookeeperHosts)('an error', () => {
  test('names the line that asked where that is wanted', async () => {
    await using client = await connected({ traceCallers: true })
    const stack = await stackOf(client)
    expect(stack).toMatch(/^NoNode: getData/)
    expect(stack).toMatch(/asked by\n(.*\n)*.*callers\.test\.ts/)
  })

  test('of a signal is left as it is', async () => {
    await using client = await connected({ traceCallers: true })
    const reason = new Error('enough')
    const { stack } = reason
    expect(await failureOf(client.getData('/', { signal: AbortSignal.abort(reason) }))).toBe(reason)
    expect(reason.stack).toBe(stack)
  })

  test('of a signal is so for every request that it ends, also one of our own', async () => {
    await using client = await connected({ traceCallers: true })
    const enough = new AbortController()
    const asked = Array.from({ length: 3 }, () => failureOf(client.getData('/', { signal: enough.signal })))
    const reason = new SessionExpired('of another')
    const { stack } = reason
    enough.abort(reason)
    expect(new Set(await Promise.all(asked))).toEqual(new Set([reason]))
    expect(reason.stack).toBe(stack)
  })

  test('does not by default', async () => {
    await using client = await connected()
    expect(await stackOf(client)).not.toContain('asked by')
  })
})
