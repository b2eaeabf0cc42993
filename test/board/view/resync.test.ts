/** A listing is taken in in steps: what happens between two of them must neither be lost nor be applied before the rest of the listing. */
import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'vitest'
import type { BoardChange } from '../../../src/board/contract/index.ts'
import { openBoard } from '../../../src/board/index.ts'
import { Resync } from '../../../src/board/view/resync.ts'
import { usual as test, variant } from '../../variant.ts'
import { claimAll, namesOn, refresh } from '../jobs.ts'

const posted = (id: string): BoardChange => ({ kind: 'posted', id })

/** A resync whose listings are numbered, and notes what is taken in and applied. */
function resyncInSteps({ steps }: { readonly steps: number }) {
  const notes: string[] = []
  const hooks = new Map<string, () => void>()
  let listings = 0
  const resync = new Resync<number>({
    signal: new AbortController().signal,
    list: async () => ++listings,
    *apply(listing) {
      for (let step = 1; step <= steps; step += 1) {
        notes.push(`listing ${listing}, step ${step}`)
        hooks.get(`${listing}.${step}`)?.()
        if (step < steps) yield
      }
    },
    onApplied: (missed) => notes.push(...missed.map(({ id }) => `change of ${id}`)),
    onError: (error) => notes.push(String(error)),
    onDisconnected: (error) => notes.push(String(error)),
  })
  const isDone = async () => {
    while (!resync.isDone) await nextTurn()
  }
  return { resync, notes, hooks, isDone }
}

test('changes between two steps are kept, and applied after the last step', async () => {
  const { resync, notes, hooks, isDone } = resyncInSteps({ steps: 3 })
  hooks.set('1.1', () => expect(resync.keep([posted('a')])).toBe(true))
  hooks.set('1.3', () => expect(resync.keep([posted('b')])).toBe(true))
  resync.start()
  await isDone()
  expect(notes).toEqual(['listing 1, step 1', 'listing 1, step 2', 'listing 1, step 3', 'change of a', 'change of b'])
  expect(resync.keep([posted('c')])).toBe(false)
})

test('a gap between two steps ends the listing, and the board is listed again', async () => {
  const { resync, notes, hooks, isDone } = resyncInSteps({ steps: 3 })
  hooks.set('1.2', () => {
    resync.keep([posted('before')])
    resync.start()
    resync.keep([posted('after')])
  })
  resync.start()
  await isDone()
  expect(notes).toEqual([
    'listing 1, step 1',
    'listing 1, step 2',
    'listing 2, step 1',
    'listing 2, step 2',
    'listing 2, step 3',
    'change of after',
  ])
})

test('a view that is closed between two steps takes in no more', async () => {
  const { resync, notes, hooks } = resyncInSteps({ steps: 3 })
  hooks.set('1.1', () => resync.stop())
  resync.start()
  for (let turn = 0; turn < 10; turn += 1) await nextTurn()
  expect(notes).toEqual(['listing 1, step 1'])
  expect(resync.isDone).toBe(false)
})

variant(
  'of a long board that changes while its view is opened, the view shows what is there, and listeners learn how jobs end',
  async () => {
    const uri = `memory:${randomUUID()}`
    await using here = await openBoard(uri)
    await using there = await openBoard(uri)
    await there.postMany(Array.from({ length: 9_000 }, (_, n) => ({ flow: 'a', store: {}, name: `job ${n}` })))
    using _there = await there.view()
    const ended: string[] = []
    here.on('consumed', ({ job }) => ended.push(job.name))
    const opening = here.view()
    let isOpen = false
    void opening.then(() => {
      isOpen = true
    })
    const consumed: string[] = []
    let rounds = 0
    for (; !isOpen; rounds += 1) {
      await there.post('a', {}, { name: `late ${rounds}` })
      const [one, other] = await claimAll(there, 2)
      await one.consume()
      await other?.abandon()
      consumed.push(one.job.name)
      await nextTurn()
    }
    using _here = await opening
    expect(rounds).toBeGreaterThan(4)
    await refresh(here)
    expect(new Set(await namesOn(here))).toEqual(new Set(await namesOn(there)))
    expect(here.jobCount).toBe(9_000)
    // This view does not see the ends of jobs that ended before it was listed.
    expect(consumed.slice(-ended.length)).toEqual(ended)
    expect(ended.length).toBeGreaterThan(0)
  },
)
