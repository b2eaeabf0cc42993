/** Work that one process does for the whole board, as hooks of conductors with `once`. */
import { expect, test } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { rejectionOf, whenAborted } from '../../board/events.ts'
import type { Place } from '../board.ts'

const NEVER = new AbortController().signal

export function onceContract({ open, expire }: Place): void {
  const run = (board: JobBoard, work: (signal: AbortSignal) => Promise<unknown>, signal = NEVER) =>
    boardInternals(board).runOnce({ id: 'migrate@2.1', work, signal })

  test('is run by one of many boards; the others resolve when it is done', async () => {
    const boards = await Promise.all([open(), open(), open(), open()])
    const runs: string[] = []
    const [begun, over] = [createDeferred(), createDeferred()]
    const all = boards.map((board) =>
      run(board, async () => {
        runs.push('begin')
        begun.resolve()
        await over.promise
        runs.push('end')
      }).then((outcome) => runs.push(outcome)),
    )
    await begun.promise
    await begun.promise
    over.resolve()
    await Promise.all(all)
    // Other boards may receive the end before the board that ran the work has its answer.
    expect(runs.slice(0, 2)).toEqual(['begin', 'end'])
    expect(runs.slice(2).sort()).toEqual(['done', 'done', 'done', 'ran'])
    expect(await run(await open(), async () => expect.fail('it was run again'))).toBe('done')
  })

  test('is run by another board if it fails, or if its board loses the session', async () => {
    const [first, second, third] = await Promise.all([open(), open(), open()])
    const failure = new Error('the table is locked')
    expect(await rejectionOf(run(first, () => Promise.reject(failure)))).toBe(failure)
    const begun = createDeferred()
    const lost = run(second, async (signal) => {
      begun.resolve()
      await whenAborted(signal)
      signal.throwIfAborted()
    })
    await begun.promise
    const [, reason] = await Promise.all([expire(second), rejectionOf(lost)])
    expect(reason).toMatchObject({ code: 'JOBBOARD_CONFLICT' })
    expect(await run(third, async () => undefined)).toBe('ran')
  })

  test('is not waited for any longer than its signal says', async () => {
    const [first, second] = await Promise.all([open(), open()])
    const [begun, over, stop] = [createDeferred(), createDeferred(), new AbortController()]
    const running = run(first, async () => {
      begun.resolve()
      await over.promise
    })
    await begun.promise
    const waiting = run(second, async () => expect.fail('it was run twice'), stop.signal)
    const reason = new Error('stopping')
    stop.abort(reason)
    expect(await rejectionOf(waiting)).toBe(reason)
    over.resolve()
    expect(await running).toBe('ran')
  })
}
