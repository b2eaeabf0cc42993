import { describe, expect, test } from 'vitest'
import { advisoryClass, advisoryKey } from '../../src/postgres/index.ts'

describe('the key of an advisory lock', () => {
  // As Python has them: int.from_bytes(blake2s(name, digest_size=8).digest(), 'big', signed=True).
  test.each([
    ['somestring', 1775893529815315737n],
    ['', -1213003798394381668n],
    ['salt', -2989518092393889746n],
    ['pepper', -9120384287218623573n],
    ['/pulp/api/v3/repositories/1/', -1588523939014043775n],
  ])('of %j is what Pulp makes of it', (name, key) => {
    expect(advisoryKey(name)).toBe(key)
  })

  test('of our own is a number of 32 bits', () => {
    expect(advisoryClass('salt')).toBe(Number(BigInt.asIntN(32, -2989518092393889746n)))
  })
})
