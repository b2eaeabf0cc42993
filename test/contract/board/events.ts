/** What happens is told once, in order, on every board, and no listener harms another. */
import { describe, expect, test } from 'vitest'
import { nextEvent, nextSession, recordEvents } from '../../board/events.ts'
import { claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

export function eventsContract({ open, expire, putRaw }: Place): void {
  test("a job's whole life is reported once and in order to everybody", async () => {
    const boards = await Promise.all([open({ who: 'actor' }), open(), open()])
    const [actor] = boards
    const histories = boards.map(recordEvents)
    // A listener opens the view; what happens before it is listed is not emitted.
    const views = await Promise.all(boards.map((board) => board.view()))
    const done = boards.map((board) => nextEvent(board, 'consumed'))
    await actor.post('flow', {}, { name: 'job' })
    await Promise.all(boards.map(refresh))
    await (await claimed(actor, 'job')).abandon()
    await (await claimed(actor, 'job')).consume()
    const events = await Promise.all(done)
    for (const { job } of events) expect(job).toMatchObject({ name: 'job', state: 'COMPLETE' })
    const life = ['posted', 'claimed', 'abandoned', 'claimed', 'consumed'].map((kind) => `${kind} job`)
    for (const history of histories) expect(history).toEqual(life)
    for (const view of views) view[Symbol.dispose]()
  })

  test('a trashed job is reported as trashed, never as consumed', async () => {
    const boards = await Promise.all([open(), open()])
    const [actor] = boards
    const histories = boards.map(recordEvents)
    // A listener opens the view; what happens before it is listed is not emitted.
    const views = await Promise.all(boards.map((board) => board.view()))
    const trashed = boards.map((board) => nextEvent(board, 'trashed'))
    await actor.post('flow', {}, { name: 'job' })
    await Promise.all(boards.map(refresh))
    await (await claimed(actor, 'job')).trash()
    for (const { job } of await Promise.all(trashed)) expect(job.state).toBe('TRASHED')
    const life = ['posted job', 'claimed job', 'trashed job']
    for (const history of histories) expect(history).toEqual(life)
    for (const view of views) view[Symbol.dispose]()
  })

  test("an owner's death is reported as an abandoned job", async () => {
    const [mortal, other] = await Promise.all([open(), open()])
    using _view = await other.view()
    await mortal.post('flow', {}, { name: 'job' })
    await refresh(other)
    const history = recordEvents(other)
    const abandoned = nextEvent(other, 'abandoned')
    await claimed(mortal, 'job')
    await expire(mortal)
    await abandoned
    expect(history).toEqual(['claimed job', 'abandoned job'])
  })

  test('a listener that throws, or rejects, is reported, and the others hear all the same', async () => {
    const board = await open()
    using _view = await board.view()
    const errors: string[] = []
    const heard: string[] = []
    board.on('posted', () => {
      throw new Error('thrown')
    })
    board.on('posted', () => Promise.reject(new Error('rejected')))
    board.on('posted', ({ job }) => heard.push(job.name))
    board.on('error', () => {
      throw new Error('even here')
    })
    const reported = new Promise<void>((resolve) => {
      board.on('error', ({ error }) => {
        errors.push(error.message)
        if (errors.length === 2) resolve()
      })
    })
    await board.post('flow', {}, { name: 'job' })
    await reported
    expect(errors.sort()).toEqual(['rejected', 'thrown'])
    expect(heard).toEqual(['job'])
    await (await claimed(board, 'job')).consume()
  })

  test('a removed listener receives nothing more', async () => {
    const board = await open()
    using _view = await board.view()
    const heard: string[] = []
    const off = board.on('posted', ({ job }) => heard.push(job.name))
    await board.post('flow', {}, { name: 'a' })
    off()
    await board.post('flow', {}, { name: 'b' })
    await refresh(board)
    expect(heard).toEqual(['a'])
  })

  describe('a posting that makes no sense', () => {
    const garbage: [string, Uint8Array][] = [
      ['nothing', new Uint8Array()],
      ['no record', Uint8Array.of(0xc1, 1, 2, 3)],
      ['a record of something else', Uint8Array.of(0x81, 0xa1, 0x61, 0x01)],
      ['a list', Uint8Array.of(0x91, 0x01)],
      [
        'a uuid that is a number of 64 bits',
        Uint8Array.of(0x81, 0xa4, ...Buffer.from('uuid'), 0xcf, 9, 9, 9, 9, 9, 9, 9, 9),
      ],
    ]
    test.each(garbage)('(%s) is hidden, reported once, and delays no other job', async (_, bytes) => {
      const [here, there] = await Promise.all([open(), open()])
      const errors: string[] = []
      const reported = nextEvent(there, 'error')
      there.on('error', ({ error }) => errors.push(error.message))
      using _view = await there.view()
      const id = await putRaw(bytes)
      await reported
      await here.post('flow', {}, { name: 'job' })
      expect(await namesOn(there)).toEqual(['job'])
      const [claim, ...others] = await there.claimNext({ max: 2 })
      expect(claim.job.name).toBe('job')
      expect(others).toEqual([])
      await claim.consume()
      const back = nextSession(there)
      await expire(there)
      await back
      await refresh(there)
      expect(errors).toHaveLength(1)
      expect(errors[0]).toContain(id)
    })

    test('is reported to who listens first, when it was there before the board was opened', async () => {
      const first = await open()
      using _firstView = await first.view()
      const noticed = nextEvent(first, 'error')
      const id = await putRaw(Uint8Array.of(0xc1))
      await noticed
      const board = await open()
      const [{ error }, view] = await Promise.all([nextEvent(board, 'error'), board.view()])
      expect(error.message).toContain(id)
      view[Symbol.dispose]()
      expect(await namesOn(board)).toEqual([])
    })
  })
}
