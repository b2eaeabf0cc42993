import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { followSignals, onAbort, rejectOnAbort } from '../../../src/core/async/abort.ts'
import { AbortFlag, toAbortSignal } from '../../../src/core/async/abort-flag.ts'

const REASON = new Error('enough')

describe('a stop', () => {
  test('is asked like a signal', () => {
    const stop = new AbortFlag()
    expect(stop.aborted).toBe(false)
    stop.throwIfAborted()
    stop.abort(REASON)
    expect(stop).toMatchObject({ aborted: true, reason: REASON })
    expect(() => stop.throwIfAborted()).toThrow(REASON)
  })

  test('fires once, with its first reason', () => {
    const stop = new AbortFlag()
    let told = 0
    stop.onAbort(() => {
      told += 1
    })
    stop.abort(REASON)
    stop.abort(new Error('later'))
    expect(stop.reason).toBe(REASON)
    expect(told).toBe(1)
  })

  test('has a signal for those who ask before it fires, and the same for those who ask after it', () => {
    const early = new AbortFlag()
    const { signal } = early
    expect(signal.aborted).toBe(false)
    early.abort(REASON)
    expect(signal).toMatchObject({ aborted: true, reason: REASON })
    expect(early.signal).toBe(signal)

    const late = new AbortFlag()
    late.abort(REASON)
    expect(late.signal).toMatchObject({ aborted: true, reason: REASON })
  })

  test('notifies no listener that has left, nor one that comes when it has fired', () => {
    const stop = new AbortFlag()
    const told: string[] = []
    stop.onAbort(() => told.push('stayed'))
    const leave = stop.onAbort(() => told.push('left'))
    leave()
    stop.abort(REASON)
    stop.onAbort(() => told.push('late'))()
    leave()
    expect(told).toEqual(['stayed'])
  })

  test('does not notify a listener that leaves because another was notified', () => {
    const stop = new AbortFlag()
    const told: string[] = []
    stop.onAbort(() => leave())
    const leave = stop.onAbort(() => told.push('left'))
    stop.abort(REASON)
    expect(told).toEqual([])
  })

  test('has a signal that any number may listen to', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => warnings.push(warning)
    process.on('warning', note)
    const { signal } = new AbortFlag()
    for (let n = 0; n < 20; n += 1) signal.addEventListener('abort', () => undefined)
    await turn()
    process.off('warning', note)
    expect(warnings).toEqual([])
  })

  test('has fired its signal by the time it notifies any listener', () => {
    const stop = new AbortFlag()
    const { signal } = stop
    const seen: boolean[] = []
    stop.onAbort(() => seen.push(signal.aborted, stop.aborted))
    stop.abort(REASON)
    expect(seen).toEqual([true, true])
  })
})

describe('what follows signals follows stops as well', () => {
  test('in a chain of both', () => {
    const source = new AbortFlag()
    using first = followSignals([source])
    using second = followSignals([first.signal, undefined])
    source.abort(REASON)
    expect(second).toMatchObject({ aborted: true, reason: REASON })
  })

  test('until it is disposed', () => {
    const source = new AbortFlag()
    const following = followSignals([source])
    following[Symbol.dispose]()
    source.abort(REASON)
    expect(following.aborted).toBe(false)
  })

  test('and is over before it begins where one has fired', () => {
    const source = new AbortFlag()
    source.abort(REASON)
    const other = new AbortFlag()
    using following = followSignals([source, other])
    other.abort(new Error('too late'))
    expect(following.reason).toBe(REASON)
  })

  test('onAbort and rejectOnAbort take both', async () => {
    const stop = new AbortFlag()
    const told: string[] = []
    onAbort(stop, () => told.push('stop'))
    onAbort(toAbortSignal(stop), () => told.push('signal'))
    const never = rejectOnAbort(new Promise(() => undefined), stop)
    stop.abort(REASON)
    await expect(never).rejects.toBe(REASON)
    expect(told.sort()).toEqual(['signal', 'stop'])
    expect(toAbortSignal(stop.signal)).toBe(stop.signal)
  })
})
