/** A view that is opened again and again while others work: each time, a listener receives every change once. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Claim, JobBoard } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { nextEvent, nextSession } from '../../board/events.ts'
import { claimed, namesOn } from '../../board/jobs.ts'
import { count } from '../../support/counts.ts'
import type { Place } from '../board.ts'

const ROUNDS = count({ test: 20, long: 500 })
const KINDS = ['posted', 'consumed'] as const

export function viewsContract({ open, openUnviewed, expire }: Place): void {
  test('while others work, each view emits what is posted and consumed once; also in the gap after a session', async () => {
    const [board, other, busy] = await Promise.all([openUnviewed(), open(), open()])
    await using work = workOn(busy)
    /** A job of the round before, which ends while the next view is opened. */
    let kept: Claim | undefined
    for (let round = 0; round < ROUNDS; round += 1) {
      const [name, before, early] = [`round ${round}`, `before ${round}`, `early ${round}`]
      /** The end of the session, which is a gap, comes before the job is posted, or before it is consumed. */
      const endsSession = { 6: 'posted', 13: 'consumed' }[round % 20]
      const endSession = async () => {
        const back = nextSession(board)
        await expire(board)
        return { back }
      }
      await other.post('flow', {}, { name: before })
      {
        using heard = listenTo(board)
        const [view] = await Promise.all([board.view(), kept?.consume(), other.post('flow', {}, { name: early })])
        using _view = view
        const [whenPosted, whenConsumed] = KINDS.map((kind) => nextEvent(board, kind, ({ job }) => job.name === name))
        const beforePost = endsSession === 'posted' ? await endSession() : undefined
        await other.post('flow', {}, { name })
        await whenPosted
        const claim = await claimed(other, name)
        const beforeConsume = endsSession === 'consumed' ? await endSession() : undefined
        await claim.consume()
        await whenConsumed
        await beforePost?.back
        await beforeConsume?.back
        const done = new Set(work.done)
        const names = await namesOn(board)
        expect(names.filter((each) => !each.startsWith('work')).toSorted()).toEqual([before, early].toSorted())
        const { events } = heard
        expect(events.filter((event) => event.endsWith(` ${name}`))).toEqual([`posted ${name}`, `consumed ${name}`])
        expect(events).toHaveLength(new Set(events).size)
        expect(events).not.toContain(`posted ${before}`)
        // Nothing is emitted about a job that is gone before it can be read; one that was emitted is emitted to its end.
        const posted = events.flatMap((event) => /^posted (work \d+)$/.exec(event)?.[1] ?? [])
        for (const each of posted) if (done.has(each)) expect(events).toContain(`consumed ${each}`)
      }
      boardInternals(board).closeUnusedView()
      expect(board.jobCount).toBeUndefined()
      await (await claimed(other, early)).consume()
      kept = await claimed(other, before)
    }
    expect(work.done.length).toBeGreaterThan(0)
  })
}

/** Posts one job after the other, and consumes it, until it is disposed. */
function workOn(board: JobBoard): AsyncDisposable & { readonly done: readonly string[] } {
  const done: string[] = []
  let isOver = false
  const working = (async () => {
    while (!isOver) {
      const name = `work ${done.length}`
      await board.post('flow', {}, { name })
      await (await claimed(board, name)).consume()
      done.push(name)
      // On a memory board, nothing else would run.
      await nextTurn()
    }
  })()
  // It is awaited at the end.
  working.catch(() => undefined)
  return {
    done,
    [Symbol.asyncDispose]: async () => {
      isOver = true
      await working
    },
  }
}

/** Records what the board emits until it is disposed, as `kind name`. */
function listenTo(board: JobBoard): Disposable & { readonly events: readonly string[] } {
  const events: string[] = []
  const ends = KINDS.map((kind) => board.on(kind, ({ job }) => events.push(`${kind} ${job.name}`)))
  return {
    events,
    [Symbol.dispose]: () => {
      for (const end of ends) end()
    },
  }
}
