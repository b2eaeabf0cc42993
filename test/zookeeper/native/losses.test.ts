/**
 * Connections of the C client that break under load. The process that uses the package is one of its own, and the proxies
 * that break its connections are in this one.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { addonAbort } from '../../support/addon-abort.ts'
import { startBreakingProxy } from '../../support/breaking-proxy.ts'
import { count } from '../../support/counts.ts'
import { namespace, zookeeperHosts } from '../../support/namespace.ts'
import { COMPILING_LIMIT_MS, ensureNativePackage, NATIVE_FOLDER, nativeLeftOut } from '../../support/native-package.ts'
import { startNode } from '../../support/node-process.ts'
import { randomly } from '../../support/random.ts'
import { portOf } from '../clients.ts'
import type { LoadResult } from './hammer.ts'

const CLIENTS = 6
const LOSSES_PER_CLIENT = count({ test: 5, long: 12 })
const ROUNDS = count({ test: 1, long: 15 })

describe.skipIf(!zookeeperHosts || nativeLeftOut)('the C client under load, whose connections break', () => {
  beforeAll(ensureNativePackage, COMPILING_LIMIT_MS)

  test.each(['reset', 'end'] as const)(
    'by a %s: no abort, no deaf socket, no lost session, no missed change, no wrong outcome',
    async (how) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { losses, ...result } = await hammered(how)
        expect(losses).toBeGreaterThanOrEqual(CLIENTS * LOSSES_PER_CLIENT)
        expect(result).toEqual({
          furtherSessions: 0,
          lostSessions: 0,
          acknowledged: expect.any(Number),
          missing: 0,
          unexpected: 0,
          seen: Array.from({ length: CLIENTS }, () => result.written),
          written: expect.any(String),
          opened: losses,
          answered: losses,
        })
      }
    },
  )
})

async function hammered(how: 'reset' | 'end'): Promise<LoadResult> {
  const random = randomly()
  const bytes = () => random.between(200, 3_000)
  await using proxy = await startBreakingProxy({ port: portOf(zookeeperHosts), how, bytes })
  const proxies = Array.from({ length: CLIENTS }, () => proxy.hosts).join()
  const script = new URL('./hammer.ts', import.meta.url)
  const args = [NATIVE_FOLDER, zookeeperHosts, proxies, String(LOSSES_PER_CLIENT), namespace()]
  await using child = await startNode(script, args)
  const said = await child.says(/^\{/).catch(async (error: unknown) => {
    const aborted = addonAbort(await child.ended)
    throw aborted === undefined ? error : new Error(aborted, { cause: error })
  })
  return JSON.parse(said)
}
