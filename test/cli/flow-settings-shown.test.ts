/** Settings of flows, as `jobboard show` and `jobboard doctor` report them. */
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../src/board/index.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from './workplace.ts'

let place: CliFolder
let board: JobBoard
let uri: string

beforeEach(async () => {
  place = await createCliFolder()
  uri = `sqlite:${join(place.cwd, 'jobs.db')}`
  board = await openBoard(uri, { who: 'ada' })
})
afterEach(async () => {
  await board.close()
  await place[Symbol.asyncDispose]()
})
afterAll(killRemaining)

test('show has the options that count, and names the flow or pattern for which each is set', async () => {
  const { uuid, maxAttempts } = await board.post('report', {}, { backOff: { first: 1_000 } })
  const show = async (...args: string[]) => (await place.bare(['show', uuid, ...args, '--board', uri])).stdout
  expect(await show()).not.toContain('settings')
  expect(jsonLines(await show('--json'))[0]).not.toHaveProperty('job.settings')
  await board.flowSettings.set('rep*', { maxAttempts: 7, deadline: '1h', backOff: { first: '10s' } })
  await board.flowSettings.set('*', { onOwnerLost: 'fail' })
  const lines = (await show()).split('\n').map((line) => line.trim())
  expect(lines).toContain('settings  maxAttempts=7 (rep*), deadline=1h (rep*), onOwnerLost=fail (*)')
  expect(lines).toContain('runs      0; 0 failed, trashed at 7 failures, or when its owner is lost')
  expect(lines).toContain('deadline  1h')
  expect(lines).toContain('back-off  first 1s')
  // The posting is as it was posted.
  expect(jsonLines(await show('--json'))[0]).toMatchObject({
    job: {
      maxAttempts,
      settings: {
        maxAttempts: { value: 7, from: 'rep*' },
        deadline: { value: 3_600_000, from: 'rep*' },
        onOwnerLost: { value: 'fail', from: '*' },
      },
    },
  })
})

test('the doctor names flows that are not enabled, and says how to enable them', async () => {
  await board.flowSettings.set('report*', { enabled: false }, { reason: 'the disk is full' })
  const { stdout, exitCode } = await place.bare(['doctor', '--board', uri])
  expect(stdout).toMatch(/warning +flow +flow report\* was disabled by ada at .* \(the disk is full\): none of its/)
  expect(stdout).toContain("-> jobboard flows unset 'report*' enabled")
  expect(stdout).toMatch(/ok +flow +settings of flow report\*: matches no flow that a conductor has had/)
  expect(exitCode).toBe(0)
  expect((await place.bare(['flows', 'unset', 'report*', 'enabled', '--board', uri])).exitCode).toBe(0)
  expect((await place.bare(['doctor', '--board', uri])).stdout).not.toContain('report*')
})
