/** What a conductor logs, and what tasks log through it, without what is named to be hidden. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { openBoard } from '../../src/board/index.ts'
import { startConductor } from '../../src/conductor/index.ts'
import { InvalidArgument, NonRetryable } from '../../src/core/errors.ts'
import { input, linear, task } from '../../src/flow/index.ts'

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
