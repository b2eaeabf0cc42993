/** Jobs of a flow that is set aside: nobody waits for them, and they wait for everybody before them. */
import { describe, expect, test } from 'vitest'
import type { JobEntry } from '../../../src/board/model/entry.ts'
import type { ClaimQueue } from '../../../src/board/queue/queue.ts'
import { change, claimable, createEntry, createQueue, type EntryOptions, readNow, unreadEntry } from './entries.ts'

const DISK = { exclusive: ['disk'] }

function writer(name: string, options: EntryOptions = {}): JobEntry {
  return createEntry({ name, resources: DISK, ...options })
}

function reader(name: string, options: EntryOptions = {}): JobEntry {
  return createEntry({ name, resources: { shared: ['disk'] }, ...options })
}

const OLD: EntryOptions = { flow: 'old' }

function setAside(queue: ClaimQueue, ...flows: string[]): void {
  queue.setAside(new Set(flows))
}

describe('jobs of a flow that is set aside', () => {
  test('do not block other jobs, can be taken as before, and block others again when they are no longer set aside', () => {
    const queue = createQueue(writer('old', OLD), writer('young'))
    expect(claimable(queue)).toEqual(['old'])
    setAside(queue, 'old')
    expect(claimable(queue)).toEqual(['old', 'young'])
    setAside(queue)
    expect(claimable(queue)).toEqual(['old'])
  })

  test('wait for who holds the resource, whether it has it alone or shares it', () => {
    const [old, oldReader] = [writer('old', OLD), reader('old reader', OLD)]
    const [young, shared] = [writer('young'), reader('shared')]
    const queue = createQueue(old, oldReader, young, shared)
    setAside(queue, 'old')
    expect(claimable(queue)).toEqual(['old', 'young'])
    change(queue, young, { claimed: true })
    expect(claimable(queue)).toEqual([])
    change(queue, young, { ended: 'COMPLETE' })
    change(queue, shared, { claimed: true })
    expect(claimable(queue)).toEqual([])
    change(queue, shared, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['old'])
  })

  test('wait for jobs before them that are not set aside', () => {
    const first = reader('first')
    const queue = createQueue(first, writer('old', OLD), reader('old reader', OLD), writer('young'))
    setAside(queue, 'old')
    expect(claimable(queue)).toEqual(['first'])
    change(queue, first, { ended: 'TRASHED' })
    expect(claimable(queue)).toEqual(['old', 'young'])
  })

  test('go one after the other among themselves, and flows that are set aside do not wait for each other', () => {
    const [one, two] = [writer('one', OLD), reader('two', OLD)]
    const queue = createQueue(one, two, reader('other', { flow: 'other' }))
    setAside(queue, 'old', 'other')
    expect(claimable(queue)).toEqual(['one', 'other'])
    change(queue, one, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['two', 'other'])
  })

  test('that come later are set aside at once; those of other flows and of none are not', () => {
    const queue = createQueue(writer('old', OLD), writer('plain'))
    setAside(queue, 'old')
    const late = writer('late', { ...OLD, priority: 'HIGH' })
    queue.update(late)
    expect(claimable(queue)).toEqual(['late', 'plain'])
    change(queue, late, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['old', 'plain'])
    queue.update(writer('another'))
    expect(claimable(queue)).toEqual(['old', 'plain'])
  })

  test('are set aside in all lines that they stand in, and keep waiting for postings that have not been read', () => {
    const unread = unreadEntry()
    const queue = createQueue(
      writer('old', { ...OLD, resources: { exclusive: ['disk', 'tape'], shared: ['net'] } }),
      writer('disk'),
      writer('tape', { resources: { shared: ['tape'] } }),
      writer('net', { resources: { exclusive: ['net'] } }),
    )
    setAside(queue, 'old')
    expect(claimable(queue)).toEqual(['old', 'disk', 'tape', 'net'])
    queue.update(unread)
    expect(claimable(queue)).toEqual([])
    readNow(unread, { name: 'read' })
    queue.update(unread)
    expect(claimable(queue)).toEqual(['read', 'old', 'disk', 'tape', 'net'])
    setAside(queue)
    expect(claimable(queue)).toEqual(['read', 'old'])
  })

  test('are named as what they wait for: the holder, who is before them, or the first of their flow', () => {
    const [first, old, later, young] = [writer('first'), writer('old', OLD), writer('later', OLD), writer('young')]
    const queue = createQueue(first, old, later, young)
    setAside(queue, 'old')
    expect(queue.blockedBy(old)?.entry).toBe(first)
    change(queue, first, { ended: 'COMPLETE' })
    expect(queue.blockedBy(old)).toBeUndefined()
    expect(queue.blockedBy(later)?.entry).toBe(old)
    expect(queue.blockedBy(young)).toBeUndefined()
    change(queue, young, { claimed: true })
    expect(queue.blockedBy(old)?.entry).toBe(young)
  })

  test('are noted as known again when one of them is claimed, once', () => {
    const old = writer('old', OLD)
    const queue = createQueue(old, writer('young'))
    setAside(queue, 'old')
    expect([...queue.claimedFlows()]).toEqual([])
    change(queue, old, { claimed: true })
    expect([...queue.claimedFlows()]).toEqual(['old'])
    expect([...queue.claimedFlows()]).toEqual([])
  })

  test('leave nothing behind, whatever becomes of them', () => {
    const entries = Array.from({ length: 200 }, (_, number) =>
      (number % 3 === 0 ? reader : writer)(`job ${number}`, { flow: `flow ${number % 5}` }),
    )
    const queue = createQueue(...entries)
    const half = ['flow 0', 'flow 1', 'flow 2']
    for (const [number, entry] of entries.entries()) {
      if (number % 10 === 0) setAside(queue, ...half.slice(0, (number / 10) % 4))
      if (number % 2 === 0) change(queue, entry, { claimed: true })
      if (number % 4 === 0) change(queue, entry, { claimed: false })
      change(queue, entry, { ended: 'COMPLETE' })
    }
    setAside(queue)
    expect([queue.size, queue.contendingFlows().size, queue.contended]).toEqual([0, 0, false])
    queue.update(writer('next'))
    expect(claimable(queue)).toEqual(['next'])
  })
})

describe('what jobs wait behind', () => {
  test('is looked for only where one may wait for another', () => {
    const queue = createQueue(
      reader('one', OLD),
      reader('two', OLD),
      writer('tape', { resources: { shared: ['tape'] } }),
    )
    expect([queue.contended, [...queue.contendingFlows()]]).toEqual([false, []])
    const alone = writer('alone', { flow: 'young' })
    queue.update(alone)
    expect(queue.contended).toBe(true)
    expect([...queue.contendingFlows().keys()].sort()).toEqual(['old', 'young'])
    change(queue, alone, { ended: 'COMPLETE' })
    expect([[...queue.contendingFlows()], queue.contended]).toEqual([[], false])
  })

  test('is reported with the first job of each flow and since when one waits; what rests does not wait', () => {
    const [resting, first, second] = [
      writer('resting', { ...OLD, dueAt: 1_000 }),
      writer('first', OLD),
      writer('b', OLD),
    ]
    const queue = createQueue(resting, first, second)
    expect(queue.contendingFlows().get('old')).toMatchObject({ since: 0, first, work: { flow: 'old' } })
    change(queue, first, { claimed: true })
    change(queue, second, { ended: 'COMPLETE' })
    queue.advance(1_000)
    queue.update(writer('other', { flow: 'other' }))
    expect(queue.contendingFlows().get('old')).toMatchObject({ since: 1_000, first: resting })
  })

  test('may be postings that any client has written: a posting that names no flow is not set aside', () => {
    const odd = writer('odd')
    Object.assign(odd.stored?.posting ?? {}, { details: { flow: { toString: null }, version: 1 } })
    const queue = createQueue(odd, writer('young', { flow: 'young' }))
    expect([...queue.contendingFlows().keys()]).toEqual(['young'])
    setAside(queue, 'young')
    expect(claimable(queue)).toEqual(['odd'])
  })
})
