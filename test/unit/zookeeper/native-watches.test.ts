import { expect, test } from 'vitest'
import { NativeWatches } from '../../../src/zookeeper/native-watches.ts'

test('a watch of the C client whose async handler fails harms nobody, and is told of', async () => {
  const faults: unknown[] = []
  const fault = new Error('mine')
  const failing = async () => {
    await Promise.resolve()
    throw fault
  }
  const watches = new NativeWatches((error) => faults.push(error))
  watches.add('/a', failing).told(3, 3, '/a')
  watches.add('/b', failing)
  watches.over(new Error('the session is over'))
  await new Promise((resolve) => setImmediate(resolve))
  expect(faults).toEqual([fault, fault])
})
