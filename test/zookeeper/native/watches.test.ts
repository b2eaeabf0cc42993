import { expect, test } from 'vitest'
import type { NativeHandle, NativeRequest, NativeStat, NativeWatch } from '../../../src/zookeeper/native/package.ts'
import { NativeWatches } from '../../../src/zookeeper/native/watches.ts'
import { ConnectionLoss } from '../../../src/zookeeper/protocol/errors.ts'
import type { Stat } from '../../../src/zookeeper/protocol/records.ts'
import type { OneShotHandler, OneShotKind } from '../../../src/zookeeper/watches/one-shot-watches.ts'

type Reported = Parameters<OneShotHandler>[0]

const turn = () => new Promise((resolve) => setImmediate(resolve))
const noFault = (error: unknown) => {
  throw error
}

function statAt(zxid: number): Stat {
  const moment = BigInt(zxid)
  return {
    czxid: 1n,
    mzxid: moment,
    pzxid: moment,
    ctime: 0,
    mtime: 0,
    version: 0,
    cversion: 0,
    aversion: 0,
    ephemeralOwner: 0n,
    dataLength: 0,
    numChildren: 0,
  }
}

/** A handler that keeps what is reported. */
function recorder(): { handler: OneShotHandler; reported: Reported[] } {
  const reported: Reported[] = []
  return { handler: (event) => reported.push(event), reported }
}

/** What a connection answers to every request that sets a watch again. */
const answering = (stat: Stat | undefined) => async () => stat

test('a watch of the C client whose async handler fails harms no other, and its fault is reported', async () => {
  const faults: unknown[] = []
  const fault = new Error('mine')
  const failing = async () => {
    await Promise.resolve()
    throw fault
  }
  const watches = new NativeWatches((error) => faults.push(error))
  watches.add('/a', 'data', failing).listener()(3, 3, '/a')
  await turn()
  watches.add('/b', 'data', failing)
  watches.sessionOver(new Error('the session is over'))
  await turn()
  expect(faults).toEqual([fault, fault])
})

test.each<[string, OneShotKind, Stat | undefined, Stat | undefined, string | undefined]>([
  ['a znode that is as it was', 'data', statAt(5), statAt(5), undefined],
  ['a znode that was written', 'data', statAt(5), statAt(6), 'dataChanged'],
  ['a znode that was deleted', 'data', statAt(5), undefined, 'deleted'],
  ['a znode that is still missing', 'data', undefined, undefined, undefined],
  ['a znode that was created', 'data', undefined, statAt(6), 'created'],
  ['children that are as they were', 'children', statAt(5), statAt(5), undefined],
  ['children that changed', 'children', statAt(5), statAt(6), 'childrenChanged'],
  ['children whose parent was deleted', 'children', statAt(5), undefined, 'deleted'],
])('a watch that is set again reports what has changed in between: %s', async (_, kind, before, now, type) => {
  const watches = new NativeWatches(noFault)
  const { handler, reported } = recorder()
  watches.add('/a', kind, handler).set(before)
  watches.rearm(answering(now), () => false)
  await turn()
  expect(reported).toEqual(type === undefined ? [] : [{ type, path: '/a' }])
  // What was set again is compared with what it was then.
  watches.rearm(answering(now), () => false)
  await turn()
  expect(reported).toHaveLength(type === undefined ? 0 : 1)
})

test('a watch whose request was not answered is not set again', async () => {
  const watches = new NativeWatches(noFault)
  watches.add('/a', 'data', () => undefined)
  const asked: unknown[] = []
  watches.rearm(
    async (question) => {
      asked.push(question)
      return undefined
    },
    () => false,
  )
  expect(asked).toEqual([])
})

test('a watch that cannot be set again waits for the next connection where this one broke, and is lost where it is refused', async () => {
  const watches = new NativeWatches(noFault)
  const { handler, reported } = recorder()
  watches.add('/a', 'data', handler).set(statAt(5))
  const isGap = (error: unknown) => error instanceof ConnectionLoss
  const failing = (error: Error) => () => Promise.reject(error)
  watches.rearm(failing(new ConnectionLoss('the connection was lost', { outcome: 'unknown' })), isGap)
  await turn()
  expect(reported).toEqual([])
  const reason = new Error('not allowed')
  watches.rearm(failing(reason), isGap)
  await turn()
  expect(reported).toEqual([{ type: 'lost', path: '/a', reason }])
})

test('no two handles are given the same function: the package would abort the process', async () => {
  const watches = new NativeWatches(noFault)
  watches.add('/a', 'data', () => undefined).set(statAt(5))
  const listeners: NativeWatch[] = []
  const handle = {
    aw_exists: (
      _path: string,
      watch: NativeWatch,
      _done: (code: number, text: string, stat: NativeStat | null) => void,
    ) => {
      listeners.push(watch)
      return 0
    },
  }
  const ask = async (question: NativeRequest<Stat | undefined>) => {
    question.send(handle as Partial<NativeHandle> as NativeHandle, () => undefined)
    return statAt(5)
  }
  watches.rearm(ask, () => false)
  await turn()
  watches.rearm(ask, () => false)
  await turn()
  expect(new Set(listeners).size).toBe(2)
})
