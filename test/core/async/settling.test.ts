/** Settling goes on while the job may still be settled, and no longer. */
import { expect, test } from 'vitest'
import { settleWithRetries } from '../../../src/core/async/settling.ts'
import { AccessDenied, ClaimLost, NotConnected, OutcomeUnknown } from '../../../src/core/errors.ts'

const AWAY = new NotConnected('away')
const UNKNOWN = new OutcomeUnknown('nobody can tell')
const LOST = new ClaimLost('lost')

/** What becomes of it when the tries end so, one after the other; the claim is lost where there are no more. */
async function settled(tries: readonly (Error | 'consumed')[]): Promise<unknown> {
  const claim = new AbortController()
  let attempt = 0
  const settle = async () => {
    const end = tries[attempt++]
    if (attempt >= tries.length) claim.abort(LOST)
    if (end instanceof Error) throw end
    return end
  }
  const end = await settleWithRetries({ lost: claim.signal }, settle, (error) => {
    throw error
  })
  expect(attempt).toBe(tries.length)
  return end
}

test.each([
  [['consumed'], 'consumed'],
  [[AWAY, AWAY, 'consumed'], 'consumed'],
  [[UNKNOWN, 'consumed'], 'consumed'],
  [[AWAY, AWAY], 'lost'],
  [[AWAY, LOST], 'lost'],
  [[UNKNOWN, AWAY], 'unknown'],
  [[UNKNOWN, LOST], 'unknown'],
] as const)('%j ends as %s', async (tries, end) => {
  expect(await settled(tries)).toBe(end)
})

test('what is refused for good is for the caller to judge', async () => {
  const denied = new AccessDenied('no')
  await expect(settled([AWAY, denied])).rejects.toBe(denied)
  const refusals: number[] = []
  const refused = (_: unknown, attempt: number) => {
    refusals.push(attempt)
    return attempt === 2 ? 'given up' : undefined
  }
  const claim = { lost: new AbortController().signal }
  expect(await settleWithRetries(claim, () => Promise.reject(denied), refused)).toBe('given up')
  expect(refusals).toEqual([1, 2])
})
