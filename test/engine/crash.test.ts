/** Kills the engine at each of its writes and lets the next one go on, until the flow has ended. */
import { describe, expect, test } from 'vitest'
import { StorageFailure } from '../../src/core/errors.ts'
import { Engine } from '../../src/engine/index.ts'
import { type AnyTask, input, linear, task } from '../../src/flow/index.ts'
import type { FlowDetail } from '../../src/persistence/index.ts'
import { dyingAt, fails, TaskRecorder } from './workshop.ts'

interface CrashScenario {
  /** How the flow ended, without what differs from run to run. */
  readonly ending: unknown
  /** What ran: `a` executed, `-a` reverted. */
  readonly trace: readonly string[]
  /** What ran although the logbook said already that it was done. */
  readonly repeated: readonly string[]
  readonly writes: number
}

/** `kills` gives for each run the write at which it dies; after the last of them nobody dies any more. */
async function tell(options: { failing: boolean; kills: readonly number[]; done: boolean }): Promise<CrashScenario> {
  await using shop = new TaskRecorder()
  const trace: string[] = []
  const repeated: string[] = []
  let found: FlowDetail
  const note = (name: string, over: string) => {
    trace.push(over === 'REVERTED' ? `-${name}` : name)
    if (found.atoms.some((atom) => atom.name === name && atom.state === over)) repeated.push(name)
  }
  const link = (name: string, before: string | undefined): AnyTask =>
    task(name, {
      requires: before ? [before] : [],
      provides: name,
      execute: (args: Record<string, unknown>) => {
        note(name, 'SUCCESS')
        return name === 'd' && options.failing ? fails('d is broken')() : `${Object.values(args).join()}${name}`
      },
      revert: () => note(name, 'REVERTED'),
    })
  const flow = linear(
    'chain',
    input(),
    ...['a', 'b', 'c', 'd'].map((name, index, names) => link(name, names[index - 1])),
  )

  for (let run = 0; ; run += 1) {
    const log = await shop.acquire(flow)
    found = log.flow
    if (isOver(found)) return { ending: essence(found), trace, repeated, writes: shop.writes.length }
    const dying = dyingAt(options.kills[run] ?? Number.POSITIVE_INFINITY, log, { done: options.done })
    await new Engine({ flow, log: dying }).run().catch(assertDied)
  }
}

const isOver = ({ state }: FlowDetail) => state === 'SUCCESS' || state === 'REVERTED' || state === 'FAILURE'

/** Without what a death may change: when things happened, and how often. */
const essence = ({ state, atoms }: FlowDetail) => ({
  state,
  atoms: atoms.map(({ updatedAt: _when, createdAt: _made, states: _past, failure, ...atom }) => ({
    ...atom,
    failure: failure?.message,
  })),
})

function assertDied(error: unknown): void {
  if (!(error instanceof StorageFailure)) throw error
}

describe.each([
  { failing: false, writes: 5, calmTrace: ['a', 'b', 'c', 'd'] },
  { failing: true, writes: 9, calmTrace: ['a', 'b', 'c', 'd', '-d', '-c', '-b', '-a'] },
])('a flow that fails: $failing', ({ failing, writes, calmTrace }) => {
  test('needs so many writes when no process dies', async () => {
    const calm = await tell({ failing, kills: [], done: false })
    expect(calm).toMatchObject({ writes, trace: calmTrace, repeated: [] })
    expect(calm.ending).toMatchObject({ state: failing ? 'REVERTED' : 'SUCCESS' })
  })

  describe.each([
    { done: false, how: 'and was not done' },
    { done: true, how: 'and was done, but its end was not reported' },
  ])('killed at a write that failed $how', ({ done }) => {
    test.each(Array.from({ length: writes }, (_, index) => index + 1))(
      'number %i, ends as if no process had died',
      async (k) => {
        const calm = await tell({ failing, kills: [], done })
        const shaken = await tell({ failing, kills: [k], done })
        expect(shaken.ending).toEqual(calm.ending)
        expect(shaken.repeated).toEqual([])
        // At most the one task that was under way ran a second time.
        expect(shaken.trace.length - calm.trace.length).toBeLessThanOrEqual(1)
        expect(new Set(shaken.trace)).toEqual(new Set(calm.trace))
      },
    )

    test('in every run again, ends as if no process had died', async () => {
      const calm = await tell({ failing, kills: [], done })
      const shaken = await tell({ failing, kills: Array.from({ length: 50 }, () => (done ? 1 : 2)), done })
      expect(shaken.ending).toEqual(calm.ending)
      expect(shaken.repeated).toEqual([])
    })
  })
})
