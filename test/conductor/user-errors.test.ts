/** What user code throws is a failure of that code, also where it is an error of this library: of an inner flow, or of another board. */
import { describe, expect, test } from 'vitest'
import {
  Cancelled,
  ChildUnavailable,
  ClaimLost,
  Fenced,
  IncompatibleVersion,
  InvalidArgument,
  InvalidPosting,
  JobboardError,
  NotConnected,
  SealedLogbook,
  ShuttingDown,
  StorageFailure,
} from '../../src/core/errors.ts'
import { type AnyFlow, defineServices, input, linear, service, task } from '../../src/index.ts'
import { boards, listTrash, startTestConductor } from './conducting.ts'

const ERRORS = [
  new ChildUnavailable('no child'),
  new StorageFailure('away', { retryable: true }),
  new ShuttingDown('stop'),
  new ClaimLost('lost'),
  new Fenced('fenced', { newestRun: 9 }),
  new SealedLogbook('sealed'),
  new IncompatibleVersion('newer'),
  new InvalidPosting('posting'),
  new InvalidArgument('argument'),
  new NotConnected('away'),
  new Cancelled('cancelled'),
]

let thrown: JobboardError = new JobboardError('none')
const fail = (): never => {
  throw thrown
}
const failing = task('failing', { execute: fail })
const fine = task('fine', { execute: () => undefined })
const schema = {
  '~standard': { version: 1 as const, vendor: 'test', validate: (): { value: object } => fail() },
}

const PLACES: readonly [string, AnyFlow][] = [
  ['a task', linear('task', input(), failing)],
  ['a service that is made for the job', linear('service', input(), fine)],
  ['a schema', linear('schema', input(schema), fine)],
]

describe.each(PLACES)('%s', (place, flow) => {
  test.each(ERRORS.map((error) => [error.name, error] as const))(
    'that throws %s fails the run of the job',
    async (_, error) => {
      thrown = error
      const [board] = await boards('a')
      const services = defineServices({
        some: service(() => (place.includes('service') ? fail() : {}), { scope: 'job' }),
      })
      const conductor = await startTestConductor({ board, persistence: 'memory:', flows: [flow], services })
      const job = await board.post(flow.name, {}, { maxAttempts: 2, backOff: { first: 1 } })
      expect(await job.wait({ timeout: '20s' })).toBe('TRASHED')
      const [trashed] = await listTrash(board)
      expect(trashed?.attempts.map(({ ended }) => ended)).toEqual(['failed', 'failed'])
      expect(trashed?.reason).toContain(error.message)
      expect(conductor.healthy).toBe(true)
    },
  )
})
