import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { Condition, createDeferred, followSignals, onAbort, rejectOnAbort } from '../../../src/core/async/abort.ts'
import { AbortFlag } from '../../../src/core/async/abort-flag.ts'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { PendingRequest } from '../../../src/zookeeper/connection/pending.ts'
import { exists } from '../../../src/zookeeper/protocol/requests.ts'

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length

describe('a signal of many', () => {
  test('has one listener while any of them wait, and none afterwards', async () => {
    const { signal } = new AbortController()
    const requests = Array.from({ length: 20 }, () => new PendingRequest(exists('/'), 0, { signal }))
    const answer = createDeferred<string>()
    const waiting = Array.from({ length: 20 }, () => rejectOnAbort(answer.promise, signal))
    expect(listeners(signal)).toBe(1)
    for (const request of requests) {
      request.promise.catch(() => undefined)
      request.fail(new Error('settled'))
    }
    expect(listeners(signal)).toBe(1)
    answer.resolve('an answer')
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['an answer']))
    expect(listeners(signal)).toBe(0)
  })

  test('is passed to all of them, and to those who come later', async () => {
    const controller = new AbortController()
    const { signal } = controller
    const reason = new Error('enough')
    const requests = Array.from({ length: 3 }, () => new PendingRequest(exists('/'), 0, { signal }).promise)
    const never = new Promise<never>(() => undefined)
    const waiting = rejectOnAbort(never, signal)
    const told: string[] = []
    onAbort(signal, () => told.push('stays'))
    onAbort(signal, () => told.push('goes'))()
    controller.abort(reason)
    for (const each of [...requests, waiting, rejectOnAbort(never, signal)]) await expect(each).rejects.toBe(reason)
    expect(told).toEqual(['stays'])
    expect(listeners(signal)).toBe(0)
    expect(await rejectOnAbort(Promise.resolve(1), undefined)).toBe(1)
  })

  test('has to be one: its controller is not, and leaves nothing behind', async () => {
    const good = new AbortController()
    const unseen = Promise.reject(new Error('unseen'))
    const waiting = Reflect.apply(rejectOnAbort, undefined, [unseen, new AbortController()])
    await expect(waiting).rejects.toBeInstanceOf(InvalidArgument)
    const follow = () => Reflect.apply(followSignals, undefined, [[good.signal, new AbortController()]])
    expect(follow).toThrow(InvalidArgument)
    expect(listeners(good.signal)).toBe(0)
  })
})

describe('a condition', () => {
  test('wakes all who wait, and nobody who comes later', async () => {
    const changed = new Condition()
    const woken: string[] = []
    const waiting = ['one', 'two'].map((name) => changed.wait().then(() => woken.push(name)))
    changed.notify()
    const later = changed.wait().then(() => woken.push('later'))
    await Promise.all(waiting)
    expect(woken).toEqual(['one', 'two'])
    changed.notify()
    await later
  })

  test('leaves nothing behind on a signal, whichever of the two ends the wait', async () => {
    const changed = new Condition()
    const { signal } = new AbortController()
    const waiting = changed.wait({ signal })
    expect(listeners(signal)).toBe(1)
    changed.notify()
    await waiting
    expect(listeners(signal)).toBe(0)

    const stop = new AbortFlag()
    const reason = new Error('enough')
    const stopped = changed.wait({ signal: stop })
    stop.abort(reason)
    changed.notify()
    await expect(stopped).rejects.toBe(reason)
    await expect(changed.wait({ signal: stop })).rejects.toBe(reason)
    const mistaken = Reflect.apply(changed.wait, changed, [{ signal: new AbortController() }])
    await expect(mistaken).rejects.toThrow(InvalidArgument)
  })
})
