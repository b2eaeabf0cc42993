/** What tasks report of themselves, as the command line shows it: their progress with a message, and their checkpoints. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { input, linear, openBoard, startConductor, task } from '../../src/index.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from './workplace.ts'

const REPORTING = `
import { input, linear, task } from 'jobboard'
const load = task('load', { execute: async (_, { progress, checkpoint }) => {
  progress(0.4, 'page 3\\x1b[2J of 7')
  await checkpoint.save({ row: 1200 })
} })
export const reporting = linear('reporting', input(), load)
`

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', REPORTING)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

test('run prints each message once, without its control characters', async () => {
  const { stderr, exitCode } = await place.bare(['run', 'reporting', '--flows', 'flows.js'])
  expect(exitCode).toBe(0)
  expect(stderr).toMatch(/^load {2}RUNNING\nload {2}RUNNING 40% page 3\\x1b\[2J of 7\nload {2}SUCCESS {2}\d+m?s\n$/)
})

describe.skipIf(!zookeeperHosts)('a job that reports', () => {
  test('is shown by track, wait, show and logbook, as people and programs read it', async () => {
    const [began, free] = [createDeferred(), createDeferred()]
    const load = task('load', {
      execute: async (_args, { progress, checkpoint, signal }) => {
        progress(0.4, 'page 3\n of 7, token=hunter2')
        await checkpoint.save({ row: 1_200, big: 2n ** 60n, token: 'hunter2' })
        began.resolve()
        await Promise.race([free.promise, new Promise((resolve) => signal.addEventListener('abort', resolve))])
        signal.throwIfAborted()
      },
    })
    const flow = linear('reporting', input(), load)
    await using board = await openBoard(place.board)
    const options = { board: place.board, persistence: place.persistence, flows: [flow], drainTimeout: 0 }
    const conductor = await startConductor(options)
    const { uuid } = await board.post(flow, {})
    await began.promise
    const redact = ['--redact', 'token']
    const shown = async (...args: string[]) => (await place.jobboard([...args, ...redact])).stdout
    const [message, row] = ['page 3\\n of 7, token=[redacted]', '"row":1200,"big":"1152921504606846976"']
    const saved = `{${row},"token":"[redacted]"}`

    const table = (await shown('track', uuid)).split('\n\n')[1]?.split('\n')
    expect(table?.[0]).toMatch(/^TASK +STATE +MESSAGE +CHECKPOINT$/)
    expect(table?.[1]).toBe(`load  RUNNING 40%  ${message}  ${saved}`)
    const [json] = jsonLines(await shown('track', uuid, '--json'))
    expect(json).toMatchObject({
      progress: { load: 0.4 },
      messages: { load: 'page 3\n of 7, token=[redacted]' },
      checkpoints: { load: { value: JSON.parse(saved), at: expect.stringMatching(/^\d{4}-/) } },
    })

    for (const what of [
      ['show', uuid],
      ['logbook', 'show', uuid],
    ]) {
      expect(await shown(...what)).toMatch(/^TASK +STATE +MESSAGE +TOOK/m)
      expect(await shown(...what)).toContain(`load  RUNNING 40%  ${message}  `)
      expect(await shown(...what, '--json')).toContain('"message":"page 3\\n of 7, token=[redacted]"')
    }
    const waited = await place.jobboard(['wait', uuid, '--within', '2s', ...redact])
    expect(waited.stderr).toContain(`run 1, 0 of 1 tasks done: load 40% (${message}; checkpoint ${saved})\n`)

    await conductor.stop()
    const waiting = await shown('track', uuid)
    expect(waiting).toContain('load was stopped in the middle, and gets its checkpoint in the next run\n')
    expect(waiting).toContain(saved)
    free.resolve()
    await using _nextOwner = await startConductor(options)
    expect((await place.jobboard(['wait', uuid])).stdout).toBe('COMPLETE\n')
    expect(await shown('track', uuid)).not.toContain('CHECKPOINT')
  })
})
