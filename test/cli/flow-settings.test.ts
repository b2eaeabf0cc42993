/** `jobboard flows set`, `unset`, `list`, `show`; the section `flow-settings` of jobboard.yaml; the export `settings` of a module. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../src/index.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining, type Outcome } from './workplace.ts'

const FLOWS = `
import { input, linear, schedule, task } from 'jobboard'

export const report = linear({ name: 'report', posting: { maxAttempts: 2 } }, input(), task('write', { provides: 'pages', execute: () => 1 }))
`

let place: CliFolder
let board: JobBoard
const flows = (...words: string[]): Promise<Outcome> =>
  place.bare(['flows', ...words], { env: { JOBBOARD_BOARD: board.uri, USER: 'ada' } })

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.mjs', FLOWS)
  board = await openBoard(`sqlite:${place.cwd}/jobs.db`)
})
afterEach(async () => {
  await board.close()
  await place[Symbol.asyncDispose]()
})
afterAll(killRemaining)

/** What is set on the board, by flow or pattern. */
const settings = async () =>
  Object.fromEntries((await board.flowSettings.list()).map((each) => [each.flow, each.settings]))

describe('the commands', () => {
  test('set, show, list and remove settings', async () => {
    const words = [
      'maxAttempts=7',
      'queue=bulk',
      'backOff.first=10s',
      'backOff.factor=1.5',
      'deadline=90m',
      'keepLogbooks=forever',
    ]
    const set = await flows('set', 'report*', ...words, '--reason', 'slow')
    expect(set).toMatchObject({ exitCode: 0, stderr: '' })
    expect(set.stdout).toMatch(
      /report\* +queue=bulk maxAttempts=7 backOff\.first=10s backOff\.factor=1\.5 deadline=90m keepLogbooks=forever +ada \(/,
    )
    expect((await flows('set', 'report', 'enabled=false', 'queue=mine', 'force=true')).exitCode).toBe(0)
    expect(await settings()).toEqual({
      report: { enabled: false, queue: 'mine', force: true },
      'report*': {
        ...{ maxAttempts: 7, queue: 'bulk', backOff: { first: 10_000, factor: 1.5 }, deadline: 5_400_000 },
        keepLogbooks: 'forever',
      },
    })
    const listed = await flows('list', '--json')
    expect(jsonLines(listed.stdout)).toMatchObject([
      { flow: 'report', settings: { enabled: false } },
      { flow: 'report*', reason: 'slow', by: expect.stringMatching(/^ada \(/), settings: { maxAttempts: 7 } },
    ])
    const shown = (await flows('show', 'report')).stdout
    expect(shown).toMatch(/^queue +mine +report \(force\)$/m)
    expect(shown).toMatch(/^backOff\.first +10s +report\*$/m)
    expect((await flows('show', 'other')).stdout).toContain('nothing is set for flow other')
    expect((await flows('unset', 'report*', 'queue', 'priority', 'backOff')).stdout).toBe(
      'settings of flow report* removed: queue, backOff\n',
    )
    expect((await flows('unset', 'report')).stdout).toBe('settings of flow report removed: queue, enabled, force\n')
    expect(await flows('unset', 'report')).toMatchObject({
      exitCode: 1,
      stderr: 'jobboard: settings of flow report: nothing is set\n',
    })
    expect(await settings()).toEqual({ 'report*': { maxAttempts: 7, deadline: 5_400_000, keepLogbooks: 'forever' } })
  })

  test.each([
    [['set', 'report', 'maxAttempt=1'], 'there is no setting maxAttempt; did you mean maxAttempts?'],
    [
      ['set', 'report', 'maxAttempts=0'],
      'settings of flow report: maxAttempts must be a whole number from 1 to 1000000',
    ],
    [['set', 'report', 'maxAttempts=some'], "maxAttempts must be a number, got 'some'"],
    [['set', 'report', 'enabled=no'], "enabled must be true or false, got 'no'"],
    [['set', 'report', 'deadline'], "a setting must be key=value, such as maxAttempts=7, got 'deadline'"],
    [['set', 'a*b', 'deadline=1h'], 'settings of flow a*b: a pattern has one *, at its end, such as report*'],
    [['set', 'report', 'queue=a*'], 'settings of flow report: '],
    [['unset', 'report', 'queu'], 'there is no setting queu; did you mean queue?'],
    [['set', 'report', 'queue=a', 'queue=b'], 'setting queue is given twice: give it once'],
    [['set', 'report', 'backOff=1'], 'backOff is set by its parts, such as backOff.first=10s'],
    [['set', 'report', 'force=true'], 'settings of flow report: give at least one besides force'],
    [
      ['set', 'report', 'delay=2h', 'expiresAfter=1h'],
      'settings of flow report: expiresAfter must be longer than delay',
    ],
    [
      ['unset', 'report', 'backOff.max'],
      'backOff.max cannot be removed alone: unset backOff, and set the parts that should stay',
    ],
  ])('%j is refused with one line, and nothing is set', async (words, message) => {
    const { exitCode, stderr, stdout } = await flows(...words)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(`jobboard: ${message}`)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(await settings()).toEqual({})
  })
})

describe('a conductor', () => {
  const conductor = async (args: readonly string[] = []) => {
    const { exitCode, stderr } = await place.spawned(['conductor', '--burst', ...args], {
      env: { JOBBOARD_BOARD: board.uri },
    })
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  }
  const config = (text: string) => place.write('jobboard.yaml', `flows: ./flows.mjs\n${text}`)

  test('declares those of the file, removes those that are no longer there, and leaves others', async () => {
    await board.flowSettings.set('mine', { queue: 'mine' })
    await config(`owner: billing
flow-settings:
  report: { maxAttempts: 4, backOff: { first: 2s }, delay: 1m, removeTrashAfter: 30d, reason: 'as agreed', version: 1 }
  'rep*': { enabled: false, keepResults: true }
`)
    const job = await board.post('report', {})
    const exit = await place.spawned(['conductor', '--burst'], { env: { JOBBOARD_BOARD: board.uri } })
    // The flow is disabled: the burst has left its job.
    expect(exit.exitCode).toBe(1)
    expect(await settings()).toEqual({
      mine: { queue: 'mine' },
      'rep*': { enabled: false, keepResults: true },
      report: { maxAttempts: 4, backOff: { first: 2_000 }, delay: 60_000, removeTrashAfter: 2_592_000_000 },
    })
    expect((await board.find(job.uuid)).state).toBe('UNCLAIMED')
    await config("owner: billing\nflow-settings:\n  'rep*': { keepResults: true, version: 1 }\n")
    await conductor()
    expect(await settings()).toEqual({ mine: { queue: 'mine' }, 'rep*': { keepResults: true } })
    // The code of the flow does not keep its results: the setting does.
    expect(await board.result(job)).toMatchObject({ results: { pages: 1 } })
  })

  test('declares those that modules export, which the file replaces by name', async () => {
    await place.write(
      'flows.mjs',
      `${FLOWS}\nexport const settings = { report: { maxAttempts: 5 }, 'r*': { priority: 'LOW' } }`,
    )
    await config('flow-settings: { report: { queue: bulk } }\n')
    await conductor()
    expect(await settings()).toEqual({ report: { queue: 'bulk' }, 'r*': { priority: 'LOW' } })
  })

  test('mistakes of the file are found with their places', async () => {
    await config(`flow-settings:
  report: { maxAttempts: 0 }
  'a*b': { queue: bulk }
  'x*': { queue: bulk }
  other: { priority: HIGH, delay: soon }
  more: { size: large }
`)
    const { exitCode, stderr } = await place.bare(['config', 'check'])
    expect(exitCode).toBe(2)
    expect(stderr.trim().split('\n')).toMatchObject([
      expect.stringMatching(/jobboard\.yaml:3:13: .*maxAttempts must be a whole number from 1/),
      expect.stringMatching(/jobboard\.yaml:4:3: .*one \*, at its end/),
      expect.stringMatching(/jobboard\.yaml:6:28: .*"soon" is not a duration/),
      expect.stringMatching(/jobboard\.yaml:7:11: unknown key size/),
    ])
    await config("flow-settings:\n  'x*': { queue: bulk }\n  repo: { queue: bulk }\n")
    const unknown = (await place.bare(['config', 'check'])).stderr.trim().split('\n')
    expect(unknown).toMatchObject([
      expect.stringMatching(/jobboard\.yaml:3:\d+: .*no flow whose name begins with x$/),
      expect.stringMatching(/jobboard\.yaml:4:\d+: .*no flow repo; there is only report$/),
    ])
  })

  test('a wrong export is refused by its module', async () => {
    await place.write('flows.mjs', `${FLOWS}\nexport const settings = [1]`)
    const { exitCode, stderr } = await place.bare(['conductor', '--burst', '--flows', './flows.mjs'], {
      env: { JOBBOARD_BOARD: board.uri },
    })
    expect(exitCode).toBe(2)
    expect(stderr).toContain("the export settings must be an object, as in { 'report*': { maxAttempts: 7 } }")
  })
})
