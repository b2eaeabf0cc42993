/** Postings that somebody has put on the board to do harm: each hides itself, once, and keeps nobody from anything. */
import { expect, test } from 'vitest'
import { encodePlain } from '../../../src/core/codec.ts'
import { InvalidArgument, InvalidPosting, PayloadTooLarge } from '../../../src/core/errors.ts'
import { nextEvent, rejectionOf } from '../../board/events.ts'
import { all, namesOn } from '../../board/jobs.ts'
import { jsonPoison, msgpackPoison, nested, postingRecord } from '../../support/poison.ts'
import type { BoardBackend, Place } from '../board.ts'

export function poisonContract({ open, putRaw }: Place, { jsonOnly }: BoardBackend): void {
  const encoded = (record: unknown) => (jsonOnly ? Buffer.from(JSON.stringify(record)) : encodePlain(record, 'msgpack'))

  test('postings that do harm are reported once each, hidden, and keep no other job from being done', async () => {
    const board = await open()
    const poison = jsonOnly ? jsonPoison() : msgpackPoison()
    const reported: string[] = []
    board.on('error', ({ error }) => reported.push(error.message))
    const ids: string[] = []
    for (const [, bytes] of poison) ids.push(await putRaw(bytes))
    await board.post('flow', {}, { name: 'innocent' })
    const late = await open()
    for (const [index, reader] of [board, late].entries()) {
      expect(await namesOn(reader)).toEqual(['innocent'])
      const [claim] = await reader.claimNext({ timeout: '30s' })
      expect(claim.job.name).toBe('innocent')
      if (index === 0) await claim.abandon()
      else await claim.consume()
    }
    const unreported = poison.filter((_, index) => !reported.some((message) => message.includes(ids[index] ?? '')))
    expect(unreported.map(([what]) => what)).toEqual([])
    expect(reported).toHaveLength(poison.length)
    expect(Math.max(...reported.map((message) => message.length))).toBeLessThan(2_000)
  })

  test('unknown fields, within the book and the back-off, are not kept', async () => {
    const board = await open()
    const uuid = '0199e0b0-0000-7000-8000-000000000000'
    const book = { uuid, name: 'book', more: nested(80) }
    const backOff = { first: 1, more: nested(80) }
    using _view = await board.view()
    const posted = nextEvent(board, 'posted')
    await putRaw(
      encoded(
        postingRecord({ name: 'odd', details: { flow: 'flow', store: { text: 'x'.repeat(900) } }, book, backOff }),
      ),
    )
    await posted
    for (const name of ['a', 'b']) await board.post('flow', { text: 'x'.repeat(900) }, { name })
    const claims = await board.claimNext({ max: 1, timeout: '30s' })
    expect(claims[0].job.name).toBe('odd')
    expect(claims[0].job.book).toEqual({ uuid, name: 'book' })
  })

  test('an accept that throws on one job passes it over, says so once, and keeps no other from being claimed', async () => {
    const board = await open()
    for (const name of ['a', 'b']) await board.post('flow', {}, { name, priority: name === 'a' ? 'HIGH' : 'NORMAL' })
    const reported: string[] = []
    board.on('error', ({ error }) => reported.push(error.message))
    const accept = ({ name }: { name: string }) => {
      if (name === 'a') throw new Error('what is a?')
      return true
    }
    const [claim] = await board.claimNext({ accept })
    expect(claim.job.name).toBe('b')
    await claim.abandon()
    const [again] = await board.claimNext({ accept })
    expect(again.job.name).toBe('b')
    expect(reported).toEqual([expect.stringContaining('(a): accept threw Error: what is a?')])
    const [left] = await board.claimNext()
    expect(left.job.name).toBe('a')
  })

  test('what could not be read again is refused when it is posted', async () => {
    const board = await open()
    const long = 'é'.repeat(513)
    const error = nextEvent(board, 'error')
    for (const [store, options] of [
      [{}, { name: long }],
      [{}, { details: { version: long } }],
      [{}, { details: { version: 7 } }],
      [{}, { book: { uuid: '0199e0b0-0000-7000-8000-000000000000', name: long } }],
    ] as const) {
      expect(await rejectionOf(board.post('flow', store, options))).toBeInstanceOf(InvalidPosting)
    }
    expect(await rejectionOf(board.post(long, {}))).toBeInstanceOf(InvalidPosting)
    expect(await rejectionOf(board.registerEntity({ kind: 'worker', name: long, metadata: {} }))).toBeInstanceOf(
      InvalidArgument,
    )
    if (!jsonOnly) {
      for (const many of [new Array(350_000).fill([]), new Array(100_000).fill(new Uint8Array())])
        expect(await rejectionOf(board.post('flow', { many }))).toBeInstanceOf(PayloadTooLarge)
    }
    expect(await all(board.jobs())).toEqual([])
    expect(await Promise.race([error, 'nothing'])).toBe('nothing')
  })
}
