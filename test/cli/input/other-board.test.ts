/** A job that is asked for on the wrong one of two boards, which share logbooks. */
import { expect, test } from 'vitest'
import { unknownJobError } from '../../../src/cli/find.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { NotFound, openBoard, openPersistence } from '../../../src/index.ts'
import { rejectionOf } from '../../board/events.ts'
import { singleTaskFlow, startTestConductor } from '../../conductor/conducting.ts'

test('a job that runs on another board is neither done nor unknown: the board of its logbook is named', async () => {
  await using bulk = await openBoard('memory:bulk-of-two')
  await using urgent = await openBoard('memory:urgent-of-two')
  await using persistence = await openPersistence('memory:')
  const [started, release] = [createDeferred(), createDeferred()]
  const slow = singleTaskFlow('slow', () => {
    started.resolve()
    return release.promise
  })
  await startTestConductor({ board: bulk, persistence, flows: [slow] })
  const job = await bulk.post(slow, { n: 1 })
  const { uuid } = job
  await started.promise
  const expected = `job ${uuid} is not on memory:urgent-of-two nor in its trash; its logbook belongs to board memory:bulk-of-two, and says RUNNING: ask that board`
  expect(await rejectionOf(urgent.result(uuid, { persistence }))).toMatchObject({
    code: NotFound.code,
    message: expected,
  })
  const logbooks = { persistence, uri: persistence.uri, [Symbol.asyncDispose]: async () => undefined }
  expect(await unknownJobError(uuid, { board: urgent, logbooks })).toMatchObject({ message: expected })
  release.resolve()
  expect(await job.wait()).toBe('COMPLETE')
})
