/** `jobboard result`: the results of a job, from the board or from its logbook. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining } from './workplace.ts'

const KEPT = `
import { input, linear, task } from 'jobboard'
const login = task('login', { provides: ['user', 'token'], execute: async () => ['ada', 'secret'] })
export const kept = linear({ name: 'kept', keepResults: true }, input(), login)
`
const NEVER = '0199c0de-0000-7000-8000-000000000009'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS + KEPT.replace(/import .*\n/, ''))
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

const conduct = () => place.jobboard(['conductor', '--flows', 'flows.js', '--burst'])
const post = async (...words: string[]) => (await place.jobboard(['post', ...words])).stdout.trim()

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  test('results that the board keeps need no logbooks, and are found by a part of the uuid', async () => {
    const uuid = await post('kept')
    const waiting = place.bare(['result', uuid, '--board', place.board, '--within', '1m', '--json'])
    await conduct()
    const { exitCode, stdout } = await waiting
    expect([exitCode, jsonLines(stdout)]).toEqual([
      0,
      [{ uuid, state: 'COMPLETE', results: { user: 'ada', token: 'secret' } }],
    ])
    expect(await place.bare(['result', uuid.slice(0, 30), '--board', place.board, '--redact', 'token'])).toEqual({
      exitCode: 0,
      stdout: 'user   "ada"\ntoken  "[redacted]"\n',
      stderr: '',
    })
  })

  test('results in a logbook need the module of the flow', async () => {
    const uuid = await post('hello', '--store', '{"name":"Ada"}')
    await conduct()
    expect(await place.jobboard(['result', uuid, '--flows', 'flows.js'])).toEqual({
      exitCode: 0,
      stdout: 'text  "Hello, Ada"\n',
      stderr: '',
    })
    const { exitCode, stderr } = await place.jobboard(['result', uuid])
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`jobboard track ${uuid}`)])
  })

  test('a job that has failed, one that is not done, and one that was never posted', async () => {
    const [waiting, failed] = [await post('other'), await post('refused')]
    await conduct()
    const outcome = await place.jobboard(['result', failed])
    expect(outcome).toMatchObject({ exitCode: 1, stdout: '' })
    expect(outcome.stderr).toMatch(new RegExp(`^jobboard: job ${failed} failed: .*the paper.*\n$`))
    expect(jsonLines((await place.jobboard(['result', failed, '--json'])).stdout)).toMatchObject([
      { uuid: failed, state: 'FAILED', reason: expect.stringContaining('the paper') },
    ])
    expect(await place.jobboard(['result', waiting, '--within', '1ms'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('still UNCLAIMED after'),
    })
    expect(await place.jobboard(['result', NEVER])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('nor in its history'),
    })
  })
})
