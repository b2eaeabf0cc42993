/** A flow with a schema: a bad job does not reach the board, and one that does all the same is not run. */
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { InvalidArgument, InvalidPosting } from '../../src/core/errors.ts'
import { input, linear, openBoard, runFlow, startConductor, task, times, unordered } from '../../src/index.ts'

const seen: unknown[] = []
const store = z.object({ to: z.email(), at: z.coerce.date(), copies: z.number().int().positive().default(1) })
type Mail = z.output<typeof store>

const send = task('send', {
  requires: ['to', 'at', 'copies'],
  execute: ({ to, at, copies }: Mail) => void seen.push([to, at.getTime(), copies]),
})
const mail = linear('mail', input(store), send)

test('posting refuses what the schema refuses, and tasks see what it makes of the store', async () => {
  await using board = await openBoard('memory:')
  await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [mail], flowConcurrency: 2 })
  const bad = board.post(mail, { to: 'nobody', at: '2026-01-01', copies: -1 })
  await expect(bad).rejects.toThrow(InvalidPosting)
  await expect(bad).rejects.toThrow(/flow mail: the store does not satisfy its schema: to: .*; copies: /)
  await expect(bad).rejects.not.toThrow('nobody')
  expect(await board.countJobs()).toBe(0)

  const good = await board.post(mail, { to: 'ada@example.org', at: '2026-01-01' })
  expect(good.details.store).toEqual({ to: 'ada@example.org', at: '2026-01-01' })
  expect(await good.wait()).toBe('COMPLETE')
  expect(seen).toEqual([['ada@example.org', Date.parse('2026-01-01'), 1]])

  const unchecked = await board.post('mail', { to: 'nobody', at: '2026-01-01' })
  expect(await unchecked.wait()).toBe('TRASHED')
  const reasons: string[] = []
  for await (const { reason } of board.trashed()) reasons.push(reason)
  expect(reasons).toEqual([expect.stringContaining('flow mail: the store does not satisfy its schema')])
})

test('runFlow refuses it, too', async () => {
  await expect(runFlow(mail, { to: 'nobody', at: '2026-01-01' })).rejects.toThrow(InvalidArgument)
})

test('a schema that throws is broken code, not a bad job: the job is tried again', async () => {
  await using board = await openBoard('memory:')
  let broken = true
  const whimsical = z.object({ to: z.string() }).refine(() => {
    if (broken) throw new TypeError('the schema is broken')
    return true
  })
  const flow = linear('whimsical', input(whimsical), task('note', { execute: () => undefined }))
  const job = await board.post('whimsical', { to: 'Ada' })
  await using conductor = await startConductor({ board, persistence: 'memory:', flows: [flow] })
  conductor.on('settled', () => {
    broken = false
  })
  expect(await job.wait()).toBe('COMPLETE')
})

test('a conductor runs flows of every pattern, and retries within one run of the job', async () => {
  await using board = await openBoard('memory:')
  const attempts: number[] = []
  const flaky = task('flaky', {
    requires: ['attempt'],
    execute: ({ attempt }: { attempt: number }) => {
      attempts.push(attempt)
      if (attempt < 3) throw new Error('not yet')
    },
  })
  const calm = task('calm', { execute: () => undefined, revert: () => undefined })
  const flow = unordered({ name: 'both', retry: times(3, { provides: 'attempt' }) }, input(), calm, flaky)
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [flow] })
  onTestFinished(() => conductor.stop())
  const job = await board.post(flow, {})
  expect(await job.wait()).toBe('COMPLETE')
  expect(attempts).toEqual([1, 2, 3])
  expect(job.runs).toBeLessThanOrEqual(1)
})
