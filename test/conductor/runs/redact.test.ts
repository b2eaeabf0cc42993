/** What a conductor logs, what tasks log through it, and what it writes to the board, without what is named to be hidden. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { openBoard, type TrashedJob } from '../../../src/board/index.ts'
import { runFlow, startConductor, track } from '../../../src/conductor/index.ts'
import type { RunSettled } from '../../../src/conductor/runs/runs.ts'
import { InvalidArgument, NonRetryable } from '../../../src/core/errors.ts'
import type { Failure } from '../../../src/core/failure.ts'
import { input, linear, task } from '../../../src/flow/index.ts'
import { encrypted, type LogbookCodec, openPersistence } from '../../../src/persistence/index.ts'
import { listTrash } from '../conducting.ts'

test('named keys are hidden in what tasks log, and in why a job failed', async () => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) })
  const login = task('login', {
    execute: async (_: object, ctx) => {
      ctx.log.child({ token: 'hunter2' }).info({ headers: { 'Pass-Word': 'hunter2' } }, 'token=hunter2')
      throw new NonRetryable('refused: {"password":"hunter2"}')
    },
  })
  const flow = linear('flow', input<object>(), login)
  await using board = await openBoard('memory:')
  const redact = ['password', 'token']
  await using conductor = await startConductor({ board, persistence: 'memory:', flows: [flow], log, redact })
  const job = await board.post(flow, {})
  expect(await job.wait()).toBe('TRASHED')
  await conductor.stop()
  const said = lines.join('')
  expect(said).toContain('token=[redacted]')
  expect(said).toContain('refused: {')
  expect(said).not.toContain('hunter2')
})

test('what is no list of names is refused', async () => {
  const wrong: object = { redact: 'password' }
  const starting = startConductor({ board: 'memory:', persistence: 'memory:', flows: [], ...wrong })
  await expect(starting).rejects.toThrow(InvalidArgument)
})

/** A job that fails as it is told to, and what of it lies on the board afterwards. */
async function trashedBy(options: {
  readonly codec?: LogbookCodec
  readonly redact?: readonly string[]
  readonly failuresOnBoard?: 'whole' | 'named'
  readonly maxAttempts?: number
}): Promise<{ shown: string; trashed: TrashedJob; settled: RunSettled; failures: readonly Failure[] }> {
  const { codec, maxAttempts = 1, ...rest } = options
  const pay = task('pay', {
    execute: async () => {
      class CardRefused extends Error {
        readonly code = 'E_CARD'
        override readonly name = 'CardRefused'
      }
      const cause = new CardRefused('card 4111-1111 refused, password=hunter2')
      throw Object.assign(new TypeError('password: "hunter2" of card 4111-1111', { cause }), { retryAfter: 1 })
    },
  })
  const flow = linear('flow', input<object>(), pay)
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:', codec ? { codec } : {})
  await using conductor = await startConductor({ board, persistence, flows: [flow], ...rest })
  const settled = new Promise<RunSettled>((resolve) => conductor.on('settled', resolve))
  const job = await board.post(flow, {}, { maxAttempts })
  expect(await job.wait()).toBe('TRASHED')
  const [trashed] = await listTrash(board)
  if (!trashed) throw new Error('nothing is in the trash')
  const tracked = await track(job.uuid, { board, persistence })
  const failures = 'failures' in tracked ? tracked.failures : []
  const shown = JSON.stringify([trashed.reason, trashed.failure, trashed.attempts])
  return { shown, trashed, settled: await settled, failures }
}

describe('on the board', () => {
  const codec = encrypted({ key: randomBytes(32) })

  test('named keys are hidden in reasons, messages, stacks and causes of failures', async () => {
    const { shown, trashed } = await trashedBy({ redact: ['password', 'causes', 'stack'], maxAttempts: 2 })
    expect(trashed.attempts).toHaveLength(2)
    expect(shown).toContain('4111')
    expect(shown).toContain('[redacted]')
    expect(shown).not.toContain('hunter2')
    expect(trashed.failure).toMatchObject({
      name: 'TypeError',
      stack: expect.any(String),
      causes: [{ name: 'CardRefused', code: 'E_CARD' }],
    })
  })

  test('beside logbooks that encrypt, only names and codes of errors lie, and the logbook has the rest', async () => {
    const { shown, trashed, settled, failures } = await trashedBy({ codec, maxAttempts: 2 })
    expect(shown).not.toMatch(/4111|hunter2|redact\.test/)
    expect(trashed.failure).toEqual({
      name: 'TypeError',
      message: 'see the logbook',
      causes: [{ name: 'CardRefused', message: 'see the logbook', code: 'E_CARD' }],
      retryAfter: 1,
    })
    expect(trashed.attempts.map(({ reason }) => reason).join()).toContain('TypeError: see the logbook')
    // Who has the key, and who runs it in this process, sees all of it.
    expect(JSON.stringify(failures)).toContain('4111')
    expect(JSON.stringify(settled.failure)).toContain('4111')
  })

  test.each([
    ['whole', codec, true],
    ['named', undefined, false],
  ] as const)('failuresOnBoard: %s says otherwise', async (failuresOnBoard, by, has) => {
    const { shown } = await trashedBy({ ...(by ? { codec: by } : {}), failuresOnBoard })
    expect(shown.includes('4111')).toBe(has)
  })

  test('what one runs in the foreground, and what could not be reverted, is as secret', async () => {
    await using board = await openBoard('memory:')
    const pay = task('pay', {
      execute: async () => {
        throw new Error('card=4111')
      },
      revert: async () => {
        throw new Error('card=4112')
      },
    })
    const flow = linear('flow', input<object>(), pay)
    await using persistence = await openPersistence('memory:', { codec })
    await expect(runFlow(flow, {}, { board, persistence })).rejects.toThrow('4112')
    await expect(runFlow(flow, {}, { board, failuresOnBoard: 'named' })).rejects.toThrow('4112')
    await expect(runFlow(flow, {}, { board, redact: ['card'] })).rejects.toThrow('4112')
    const trash = await listTrash(board)
    expect(trash.map(({ reason }) => reason)).toEqual([
      'it could not be reverted: WrappedFailure: Error: see the logbook; Error: see the logbook',
      'it could not be reverted: WrappedFailure: Error: see the logbook; Error: see the logbook',
      'it could not be reverted: WrappedFailure: Error: card=[redacted]; Error: card=[redacted]',
    ])
    expect(JSON.stringify(trash.map(({ failure }) => failure))).not.toContain('411')
  })

  test('a posting that cannot work is described in full: no task has said anything', async () => {
    const flow = linear(
      'flow',
      input<{ n: number }>(),
      task('pay', { requires: ['n'], execute: async (_: { n: number }) => 1 }),
    )
    await using board = await openBoard('memory:')
    await using persistence = await openPersistence('memory:', { codec })
    await using _conductor = await startConductor({ board, persistence, flows: [flow] })
    const job = await board.post('flow', {}, { details: { version: '1.0' } }).catch(() => undefined)
    expect(job && (await job.wait())).toBe('TRASHED')
    expect((await listTrash(board))[0]?.reason).toContain('n')
  })

  test('a choice that there is not is refused', async () => {
    const wrong: object = { failuresOnBoard: 'some' }
    await expect(startConductor({ board: 'memory:', persistence: 'memory:', flows: [], ...wrong })).rejects.toThrow(
      "failuresOnBoard must be 'whole' or 'named'",
    )
    const flow = linear('flow', input<object>(), task('pay', { execute: async () => 1 }))
    await expect(runFlow(flow, {}, wrong)).rejects.toThrow(InvalidArgument)
  })
})
