/** `jobboard.yaml`: what it says, what wins over it, and what is said of mistakes in it. */
import { randomBytes } from 'node:crypto'
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openBoard, openPersistence } from '../../../src/index.ts'
import { type CliFolder, createCliFolder, FLOWS } from '../workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.mjs', FLOWS)
})
afterEach(async () => place[Symbol.asyncDispose]())

async function config(text: string, name = 'jobboard.yaml'): Promise<void> {
  await place.write(name, text)
}

describe('what is not typed', () => {
  test('board, logbooks, flows and redaction come from the file, seen from its folder', async () => {
    await config(`
board: here
boards:
  here: { uri: '\${BOARD}', persistence: near }
persistences: { near: 'directory:./logbooks' }
flows: ./flows.mjs
redact: [text]
`)
    await mkdir(join(place.cwd, 'deep/er'), { recursive: true })
    const run = await place.bare(['run', 'hello', '--store', '{"name":"Ada"}', '--quiet'], {
      env: { BOARD: place.board },
    })
    expect(run).toEqual({ exitCode: 0, stdout: 'text  "[redacted]"\n', stderr: '' })
    await using persistence = await openPersistence(`directory:${await realpath(place.cwd)}/logbooks`)
    const books: string[] = []
    for await (const { name } of persistence.listBooks()) books.push(name)
    expect(books).toEqual(['hello'])
    await using board = await openBoard(place.board)
    expect(await board.countJobs()).toBe(0)
  })

  test('what is typed wins over the environment, and that over the file', async () => {
    await config(
      'board: zookeeper://file/x\nboards: { typed: zookeeper://typed/x, set: zookeeper://set/x }\ntimeout: 1ms\n',
    )
    const board = async (args: readonly string[], env: Record<string, string>) => {
      const { stderr } = await place.bare(['jobs', ...args], { env })
      return /zookeeper:\/\/(\w+)/.exec(stderr)?.[1]
    }
    expect(await board([], {})).toBe('file')
    expect(await board([], { JOBBOARD_BOARD: 'set' })).toBe('set')
    expect(await board(['--board', 'typed'], { JOBBOARD_BOARD: 'set' })).toBe('typed')
    const { stderr } = await place.bare(['jobs', '--timeout', '2ms'])
    expect(stderr).toContain('within 2ms')
  })

  test('how logbooks are sealed: who says it in either way overrides both ways of the file', async () => {
    await config('persistences: { near: { uri: "directory:./logbooks", key: nonsense } }\npersistence: near\n')
    await place.write('codec.mjs', 'export const codec = { name: "as-it-is", encode: (b) => b, decode: (b) => b }')
    const exitCode = async (args: readonly string[], env: Record<string, string>) =>
      (
        await place.bare(['run', 'hello', '--flows', 'flows.mjs', '--store', '{"name":"Ada"}', '--quiet', ...args], {
          env,
        })
      ).exitCode
    expect(await exitCode([], {})).toBe(2)
    expect(await exitCode(['--codec', 'codec.mjs'], {})).toBe(0)
    expect(await exitCode([], { JOBBOARD_CODEC: './codec.mjs' })).toBe(0)
    expect(await exitCode([], { JOBBOARD_LOGBOOK_KEY: randomBytes(32).toString('base64') })).toBe(0)
  })

  test('encrypted logbooks take plain results only where the file, or the environment, says so', async () => {
    const key = randomBytes(32).toString('base64')
    const run = ['run', 'hello', '--flows', 'flows.mjs', '--store', '{"name":"Ada"}', '--quiet']
    const files = (more: string) => `persistences: { near: { uri: "directory:./plain"${more} } }\npersistence: near\n`
    await config(files(''))
    expect((await place.bare(run)).exitCode).toBe(0)
    const listed = JSON.parse((await place.bare(['logbook', 'list', '--json'])).stdout)
    const show = (env: Record<string, string> = {}) => place.bare(['logbook', 'show', listed.uuid], { env })
    await config(files(`, key: "${key}"`))
    expect((await show()).stderr).toContain('on a command line, JOBBOARD_LOGBOOK_REQUIRE=false')
    expect((await show({ JOBBOARD_LOGBOOK_REQUIRE: 'false' })).exitCode).toBe(0)
    expect(await show({ JOBBOARD_LOGBOOK_REQUIRE: 'no' })).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('JOBBOARD_LOGBOOK_REQUIRE must be true or false, got "no"'),
    })
    await config(files(`, key: "${key}", require: false`))
    expect((await show()).exitCode).toBe(0)
    expect((await show({ JOBBOARD_LOGBOOK_REQUIRE: 'true' })).exitCode).toBe(1)
    // Another key is typed; what the logbooks hold is still what the file says of them.
    expect((await show({ JOBBOARD_LOGBOOK_KEY: key })).exitCode).toBe(0)
  })

  test('flags of conductors, where they are not typed', async () => {
    await config('flows: ./flows.mjs\nconductor: { name: yours, concurrency: 3, logLevel: silent, drainTimeout: 5 }\n')
    const { exitCode, stdout } = await place.jobboard(['conductor', '--burst'])
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^conductor yours runs /)])
    expect((await place.jobboard(['conductor', '--burst', '--name', 'mine'])).stdout).toMatch(/^conductor mine runs /)
  })

  test.each([
    ['typed', '', ['--unaccepted-after', '0']],
    ['in the file', 'unacceptedAfter: 0', []],
  ])('how long jobs of flows that no conductor knows hold back others: %s', async (_, line, flags) => {
    await config(`flows: ./flows.mjs\nconductor:\n  logLevel: silent\n  ${line}\n`)
    await using board = await openBoard(place.board)
    const resources = { exclusive: ['disk'] }
    const old = await board.post('old', {}, { resources })
    const young = await board.post('hello', { name: 'Ada' }, { resources })
    const ended = place.jobboard(['conductor', '--max-jobs', '1', '--max-idle-time', '30s', ...flags])
    expect(await young.wait({ timeout: '20s' })).toBe('COMPLETE')
    expect(await ended).toMatchObject({ exitCode: 0 })
    expect(old.state).toBe('UNCLAIMED')
  })

  test.each([
    ['typed', '', ['--remove-trash-after', '0']],
    ['in the file', 'removeTrashAfter: 0', []],
  ])('how long jobs stay in the trash: %s', async (_, line, flags) => {
    await config(`flows: ./flows.mjs\nconductor:\n  logLevel: silent\n  ${line}\n`)
    await using board = await openBoard(place.board)
    await (await board.claim(await board.post('hello', {}))).trash()
    const isEmpty = async () => (await board.trashed().next()).done === true
    expect(await isEmpty()).toBe(false)
    const ended = place.jobboard(['conductor', '--max-jobs', '1', '--max-idle-time', '30s', ...flags])
    while (!(await isEmpty())) await board.countJobs()
    await board.post('hello', { name: 'Ada' })
    expect(await ended).toMatchObject({ exitCode: 0 })
  })
})

test('secrets come from the environment, and are never printed', async () => {
  await config(`
boards:
  prod: { uri: 'zookeeper://127.0.0.1:1/x', auth: 'ada:\${PASSWORD}' }
  other: zookeeper://ada:\${PASSWORD}@127.0.0.1:1/x
  else: zookeeper://127.0.0.1:1/\${PLACE:-nowhere}
  plain: zookeeper://127.0.0.1:1/$\${x}
`)
  const outcome = async (name: string) =>
    (await place.bare(['jobs', '--board', name, '--timeout', '20ms'], { env: { PASSWORD: 'hunter2' } })).stderr
  expect(await outcome('other')).toContain('zookeeper://ada:***@127.0.0.1:1/x')
  expect(await outcome('prod')).toContain('cannot open zookeeper://127.0.0.1:1/x')
  expect(await outcome('else')).toContain('/nowhere')
  // Only what is used is looked up.
  expect((await place.bare(['jobs', '--board', 'prod'])).stderr).toBe(
    `jobboard: jobboard.yaml:3:45: the variable PASSWORD is not set; set it, or write \${PASSWORD:-…} with a default\n`,
  )
  for (const name of ['other', 'prod', 'else']) expect(await outcome(name)).not.toContain('hunter2')
})

describe('mistakes: exit code 2, and where they are', () => {
  const cases: readonly (readonly [text: string, says: string])[] = [
    ['borad: x', '1:1: unknown key borad; did you mean board?'],
    ['queues: [a, b]', '1:1: unknown key queues; queues belongs to conductor: conductor: { queues: … }\n'],
    ['queue: a', '1:1: unknown key queue; queues belongs to conductor: conductor: { queues: … }\n'],
    [
      'deployments:\n  staging:\n    maxJobs: 3',
      '3:5: unknown key maxJobs; maxJobs belongs to conductor: conductor: { maxJobs: … }\n',
    ],
    ['pool: { queues: [a] }', '1:9: unknown key queues; the keys are isolate, '],
    ['nonsense: x', '1:1: unknown key nonsense; the keys are boards, persistences, board, '],
    ['boards:\n  a: 3', '2:3: boards.a must be a text, or a map with uri'],
    ['boards:\n  a: { url: x }', '2:3: boards.a.uri is missing: it must be a text'],
    ['boards:\n  a: { uri: x, ath: y }', '2:16: unknown key ath; did you mean auth?'],
    ['boards:\n  a: [', '2:7: this is not valid YAML (Flow sequence'],
    ['conductor:\n  size:\n    - huge', '2:3: conductor.size.0 must be one of small, medium, large'],
    ['conductor:\n  concurrency: 0', '2:3: conductor.concurrency must be a whole number from 1'],
    ['board: x:y\ntimeout: never', '2:1: timeout: "never" is not a duration'],
    ['board: ${', `1:1: write \${NAME}, the name of a variable in braces`],
    [
      'board: lost\nboards: { other: zookeeper://h/x }',
      '1:1: there is no board "lost" in jobboard.yaml; there is only other',
    ],
    ['- a', '1:1: it must be a map'],
    ['a: 1\na: 2', '2:1: this is not valid YAML (Map keys must be unique)'],
    ['limits:\n\tdb:\n\t\tconcurrency: 3', '2:1: YAML is indented with blanks: replace the tabs'],
  ]
  test.each(cases)('%j', async (text, says) => {
    await config(text)
    const { exitCode, stdout, stderr } = await place.bare(['jobs'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^(jobboard: [^\n]+\n)+$/)
    expect(stderr).toContain(`jobboard: jobboard.yaml:${says}`)
  })

  test('of a conductor are reported to a user who runs one, and do not keep others from working', async () => {
    await using _board = await openBoard(place.board)
    const says = async (what: string) => {
      await config(`flows: ./flows.mjs\nconductor: { ${what} }\n`)
      expect(await place.jobboard(['jobs'])).toMatchObject({ exitCode: 0, stderr: '' })
      const { exitCode, stderr } = await place.jobboard(['conductor', '--burst'])
      return [exitCode, stderr]
    }
    expect(await says('drainTimeout: soon')).toEqual([
      2,
      expect.stringContaining('jobboard.yaml:2:14: conductor.drainTimeout: "soon" is not a duration'),
    ])
    expect(await says('drainTimeout: "60"')).toEqual([
      2,
      expect.stringContaining("'60' has no unit: write 60s, or 60ms"),
    ])
    expect(await says('removeTrashAfter: 1 fortnight')).toEqual([
      2,
      expect.stringContaining('jobboard.yaml:2:14: conductor.removeTrashAfter: "1 fortnight" is not a duration'),
    ])
    expect(await says(`name: '\${NOWHERE}'`)).toEqual([
      2,
      expect.stringContaining('jobboard.yaml:2:14: the variable NOWHERE is not set'),
    ])
  })

  test('a name that is not there, and a file that is not there', async () => {
    const says = async (args: readonly string[], env = {}) => (await place.bare(['jobs', ...args], { env })).stderr
    expect(await says(['--board', 'demo'])).toBe(
      'jobboard: board demo: there is no jobboard.yaml here or above that defines this name; give a URI, or --config FILE\n',
    )
    expect(await says(['--config', 'none.yaml'])).toBe(
      'jobboard: config file none.yaml does not exist; correct --config or JOBBOARD_CONFIG\n',
    )
    await config('boards: { demo: zookeeper://h/x }', 'other.yaml')
    expect(await says(['--board', 'dmo'], { JOBBOARD_CONFIG: 'other.yaml' })).toBe(
      'jobboard: there is no board "dmo" in other.yaml; did you mean demo?\n',
    )
  })
})
