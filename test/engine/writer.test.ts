import { expect, test } from 'vitest'
import { TransitionWriter } from '../../src/engine/writer.ts'
import type { Transition } from '../../src/persistence/index.ts'

/** A writer whose ledger hands out these transitions, and the order in which things happen. */
function writerOf(transitions: (Transition | undefined)[], write: () => Promise<void> | undefined) {
  const order: string[] = []
  const writer = new TransitionWriter({
    ledger: { takeTransition: () => transitions.shift() } as never,
    log: {
      write: () => {
        order.push('write')
        return write()
      },
    } as never,
    assertMayGoOn: () => undefined,
    onRecorded: () => void order.push('recorded'),
  })
  return { writer, order }
}

test('a record without changes is over at once, and the next one is written at once', async () => {
  const { writer, order } = writerOf([undefined, { state: 'RUNNING' }], async () => undefined)
  const first = writer.record()
  const second = writer.record()
  order.push('caller')
  await Promise.all([first, second])
  expect(order).toEqual(['recorded', 'write', 'caller', 'recorded'])
})

test('a log that returns no promise has written', async () => {
  const { writer, order } = writerOf([{ state: 'RUNNING' }], () => undefined)
  await writer.record()
  expect(order).toEqual(['write', 'recorded'])
})

test('after a write that throws, also without a promise, nothing is written', async () => {
  const { writer, order } = writerOf([{ state: 'RUNNING' }, { state: 'SUCCESS' }], () => {
    throw new Error('refused')
  })
  await expect(writer.record()).rejects.toThrow('refused')
  await expect(writer.record()).rejects.toThrow('refused')
  expect(order).toEqual(['write'])
})
