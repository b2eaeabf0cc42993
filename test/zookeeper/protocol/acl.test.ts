import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { digestId } from '../../../src/zookeeper/index.ts'

describe('a digest', () => {
  test('is the one that servers compute', () => {
    // From ZooKeeper's own documentation of the super user.
    expect(digestId('super', 'super')).toEqual({ scheme: 'digest', id: 'super:gG7s8t3oDEtIqF6DM9LlI/R+9Ss=' })
  })

  test.each(['', 'a:b'])('of the user %j cannot be distinguished from another', (user) => {
    expect(() => digestId(user, 'secret')).toThrow(InvalidArgument)
  })
})
