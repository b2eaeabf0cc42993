import { describe, expect, test } from 'vitest'
import { type Context, PayloadTooLarge, type RevertContext, task } from '../../src/index.ts'
import { fakeContext, revertTask, runTask } from '../../src/testing/index.ts'

interface Bank {
  readonly bookings: string[]
}

const charge = task('charge', {
  requires: ['amount'],
  inject: { currency: 'EUR' },
  execute: ({ amount, currency }: { amount: number; currency: string }, ctx: Context<{ bank: Bank }>) => {
    ctx.signal.throwIfAborted()
    ctx.progress(0.5)
    ctx.services.bank.bookings.push(`${amount} ${currency} under ${ctx.fence}`)
    ctx.progress(2)
    return { receipt: amount, at: new Date(0) }
  },
  revert: ({ amount }, { result, failure, failures, services }: RevertContext<{ receipt: number }, { bank: Bank }>) => {
    services.bank.bookings.push(`back ${amount}: ${result?.receipt} ${failure?.message} ${failures.length}`)
  },
})

describe('a task by itself', () => {
  test('is executed with the values that it is given, and reports its progress', async () => {
    const bank: Bank = { bookings: [] }
    const ctx = fakeContext({ services: { bank }, fence: 7n })
    expect(await runTask(charge, { amount: 3 }, ctx)).toEqual({ receipt: 3, at: new Date(0) })
    expect(await runTask(charge, { amount: 4, currency: 'CHF' }, ctx)).toMatchObject({ receipt: 4 })
    expect(bank.bookings).toEqual(['3 EUR under 7', '4 CHF under 7'])
    expect(ctx.progressed).toEqual([0.5, 1, 0.5, 1])
  })

  test('is undone with its result, or with its failure', async () => {
    const bank: Bank = { bookings: [] }
    await revertTask(
      charge,
      { amount: 3 },
      fakeContext({ services: { bank }, result: { receipt: 3, at: new Date(0) } }),
    )
    await revertTask(charge, { amount: 3 }, fakeContext({ services: { bank }, failure: new Error('no cover') }))
    expect(bank.bookings).toEqual(['back 3: 3 undefined 0', 'back 3: undefined no cover 1'])
  })

  test('receives its signal', async () => {
    const ctx = fakeContext({ services: { bank: { bookings: [] } } })
    ctx.abort(new Error('the claim is lost'))
    await expect(runTask(charge, { amount: 3 }, ctx)).rejects.toThrow('the claim is lost')
  })

  test('runs with its hooks, in order', async () => {
    const did: string[] = []
    const hooked = task('hooked', {
      preExecute: () => did.push('before'),
      execute: () => {
        did.push('execute')
        throw new Error('no')
      },
      postExecute: () => did.push('after'),
      preRevert: () => did.push('before revert'),
      revert: () => did.push('revert'),
      postRevert: () => did.push('after revert'),
    })
    await expect(runTask(hooked, {})).rejects.toThrow('no')
    await revertTask(hooked, {})
    expect(did).toEqual(['before', 'execute', 'after', 'before revert', 'revert', 'after revert'])
  })

  test('returns what a logbook gives back, and refuses what none could hold', async () => {
    const made = { list: [1, undefined], bytes: new Uint8Array([1]) }
    const plain = task('plain', { execute: () => made })
    const result = await runTask(plain, {})
    expect(result).toEqual(made)
    expect(result).not.toBe(made)
    const wild = task('wild', { execute: () => () => 1 })
    await expect(runTask(wild, {})).rejects.toMatchObject({ code: 'JOBBOARD_INVALID_ARGUMENT' })
  })
})

describe('a task that saves checkpoints', () => {
  const rows = task('rows', {
    execute: async (_args, { progress, checkpoint, signal }) => {
      for (let row = Object(checkpoint.last).row ?? 0; row < 3; row += 1) {
        signal.throwIfAborted()
        progress(row / 3, row === 1 ? undefined : `row ${row}`)
        await checkpoint.save({ row: row + 1 })
      }
    },
  })

  test('shows what it reports, and what it saves', async () => {
    const ctx = fakeContext()
    await runTask(rows, {}, ctx)
    expect(ctx.saved).toEqual([{ row: 1 }, { row: 2 }, { row: 3 }])
    expect(ctx.messages).toEqual(['row 0', undefined, 'row 2'])
    expect(ctx.progressed).toHaveLength(3)
  })

  test('goes on from what it is given', async () => {
    const ctx = fakeContext({ checkpoint: { row: 2 } })
    expect(ctx.checkpoint.last).toEqual({ row: 2 })
    await runTask(rows, {}, ctx)
    expect(ctx.saved).toEqual([{ row: 3 }])
  })

  test('is refused what an engine would refuse, and what it saves is a copy', async () => {
    const ctx = fakeContext()
    await expect(ctx.checkpoint.save(new Map())).rejects.toThrow('the checkpoint cannot be stored')
    await expect(ctx.checkpoint.save(new Uint8Array(70_000))).rejects.toThrow(PayloadTooLarge)
    const value = { rows: [1] }
    await ctx.checkpoint.save(value)
    value.rows.push(2)
    expect(ctx.saved).toEqual([{ rows: [1] }])
  })
})

test('defaults are those of a flow without a board', () => {
  const nothing = { progressed: [], messages: [], saved: [], checkpoint: { last: undefined } }
  expect(fakeContext()).toMatchObject({ fence: 0n, run: 1, job: undefined, services: undefined, ...nothing })
})

test.each([
  [
    'runTask takes a task',
    () => runTask({} as typeof charge, { amount: 1 }, fakeContext({ services: { bank: { bookings: [] } } })),
  ],
  ['revertTask takes a task', () => revertTask('charge' as never, {})],
  ['fakeContext has no option "fences"', async () => fakeContext({ fences: 1n } as object)],
  ['the checkpoint cannot be stored', async () => fakeContext({ checkpoint: () => 1 })],
  ['fence has to be a bigint', async () => fakeContext({ fence: 7 as unknown as bigint })],
])('refuses what makes no sense: %s', async (message, misuse) => {
  await expect(misuse()).rejects.toThrow(message)
})
