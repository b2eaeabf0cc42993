import { expect, test } from 'vitest'
import { type ClaimOrderKey, compareClaimOrder } from '../../../src/board/model/claim-order.ts'

function at(id: string, rest: Partial<ClaimOrderKey> = {}): ClaimOrderKey {
  return { id, priority: 'NORMAL', order: 1n, ...rest }
}

test('priority counts before posting order, posting order before the id', () => {
  const sorted = [
    at('job9', { priority: 'VERY_HIGH', order: 9n }),
    at('job8', { order: 1n }),
    at('job9', { order: 1n }),
    at('job1', { order: 2n }),
    at('job0', { priority: 'VERY_LOW', order: 0n }),
  ]
  expect(sorted.toReversed().sort(compareClaimOrder)).toEqual(sorted)
})

test('ids count by their number, also when there are more digits', () => {
  const sorted = ['job0000000001', 'job9999999999', 'job10000000000'].map((id) => at(id))
  expect(sorted.toReversed().sort(compareClaimOrder)).toEqual(sorted)
  expect(compareClaimOrder(at('job1'), at('job1'))).toBe(0)
})
