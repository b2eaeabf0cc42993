/** `jobboard config show`, `check` and `schema`: what holds and where it comes from, and all mistakes at once. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DOCUMENT, toJsonSchema } from '../../../src/cli/input/config/schema.ts'
import { ROOT } from '../../support/build.ts'
import { type CliFolder, createCliFolder, FLOWS } from '../workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.mjs', FLOWS)
})
afterEach(() => place[Symbol.asyncDispose]())

const CONFIG = `owner: billing
board: local
boards:
  local: zookeeper://127.0.0.1:2181/demo
  production:
    uri: postgres://jobs:\${PG_PASSWORD}@db.example.org/jobs
persistence: directory:./logbooks
flows: ./flows.mjs
limits:
  api/stripe: { concurrency: 10, rate: 100/1m, burst: 20 }
tenants:
  acme: { limit: { concurrency: 2 } }
  zeta:
schedules:
  report:
    flow: hello
    cron: '0 6 * * *'
    store: { name: Ada, password: hunter2 }
    tenants: all
flow-defaults:
  hello: { maxAttempts: 3 }
conductor:
  concurrency: 4
deployments:
  production:
    board: production
    conductor: { logLevel: warn }
    limits:
      api/stripe: { concurrency: 50 }
`

async function show(args: readonly string[] = [], env: Record<string, string> = {}) {
  const { stdout, stderr } = await place.bare(['config', 'show', '--json', ...args], { env })
  expect(stderr).toBe('')
  const lines: { key: string; value: unknown; origin: object }[] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return new Map(lines.map(({ key, ...rest }) => [key, rest]))
}

describe('config show', () => {
  test('prints each value with its origin, as the expected output has it', async () => {
    await place.write('jobboard.yaml', CONFIG)
    const { exitCode, stdout } = await place.bare(
      ['config', 'show', '--effective', '--deployment', 'production', '--timeout', '2s'],
      { env: { PG_PASSWORD: 'hunter2', JOBBOARD_RELEASE: '2026-11' } },
    )
    expect(exitCode).toBe(0)
    await expect(stdout).toMatchFileSnapshot('config-show.txt')
  })

  test('the order: defaults, file, deployment, environment, command line', async () => {
    await place.write('jobboard.yaml', CONFIG)
    expect((await show(['--effective'])).get('conductor.logLevel')).toEqual({
      value: 'info',
      origin: { kind: 'default' },
    })
    expect((await show()).get('board')).toMatchObject({ value: 'local', origin: { kind: 'file', line: 2 } })
    const deployed = await show([], { JOBBOARD_DEPLOYMENT: 'production' })
    expect(deployed.get('board')).toMatchObject({ value: 'production', origin: { kind: 'deployment', line: 26 } })
    expect(deployed.get('limits.api/stripe.concurrency')).toMatchObject({ value: 50, origin: { kind: 'deployment' } })
    // A deployment changes what it names, and nothing beside it.
    expect(deployed.get('limits.api/stripe.rate')).toMatchObject({ value: '100/1m', origin: { kind: 'file' } })
    const env = { JOBBOARD_DEPLOYMENT: 'production', JOBBOARD_BOARD: 'local' }
    expect((await show([], env)).get('board')).toEqual({
      value: 'local',
      origin: { kind: 'environment', variable: 'JOBBOARD_BOARD' },
    })
    expect((await show(['--board', 'production'], env)).get('board')).toEqual({
      value: 'production',
      origin: { kind: 'flag', flag: '--board' },
    })
  })

  test('shows no secret: not in a URI, a store, a key, a variable', async () => {
    await place.write(
      'jobboard.yaml',
      `${CONFIG}persistences: { db: { uri: 'postgres://a:hunter2@h/d', key: hunter2 } }\nredact: [name]\n`,
    )
    const env = {
      PG_PASSWORD: 'hunter2',
      JOBBOARD_ZOOKEEPER_AUTH: 'ada:hunter2',
      JOBBOARD_BOARD: 'redis://x:hunter2@h/0',
    }
    const { stdout } = await place.bare(['config', 'show', '--effective', '--deployment', 'production'], { env })
    expect(stdout).not.toContain('hunter2')
    expect(stdout).not.toContain('Ada')
  })

  test('without a file: what the environment says, and the defaults', async () => {
    expect((await place.bare(['config', 'show'])).stdout).toBe('nothing is set\n')
    expect((await show([], { JOBBOARD_BOARD: 'memory:x' })).get('board')).toMatchObject({ value: 'memory:x' })
    expect((await show(['--effective'])).get('timeout')).toEqual({ value: '10s', origin: { kind: 'default' } })
    expect(await place.bare(['config', 'show', '--deployment', 'x'])).toMatchObject({
      exitCode: 2,
      stderr: 'jobboard: there is no jobboard.yaml here or above; give --config FILE\n',
    })
  })
})

/** Returns the lines of the mistakes, without the name of the command. */
async function check(args: readonly string[] = [], env: Record<string, string> = {}): Promise<string[]> {
  const { exitCode, stdout, stderr } = await place.bare(['config', 'check', ...args], { env })
  expect({ exitCode, stdout: stdout === '' }).toEqual({ exitCode: stderr === '' ? 0 : 2, stdout: stderr !== '' })
  return stderr
    .replaceAll(/^jobboard: /gm, '')
    .replaceAll(`${place.cwd}/`, '')
    .replaceAll(place.cwd, '.')
    .split('\n')
    .slice(0, -1)
}

describe('config check', () => {
  test('finds nothing wrong in a file that is right, with each deployment', async () => {
    await place.write('jobboard.yaml', CONFIG)
    expect(await place.bare(['config', 'check'])).toEqual({
      exitCode: 0,
      stdout: 'jobboard.yaml has no mistakes\n',
      stderr: '',
    })
    const { stdout } = await place.bare(['config', 'check', '--all'], { env: { PG_PASSWORD: 'x' } })
    expect(stdout).toBe('jobboard.yaml has no mistakes, with deployment production\n')
  })

  test('a variable has to be set where its value is used', async () => {
    await place.write('jobboard.yaml', CONFIG)
    expect(await check()).toEqual([])
    const missing = `jobboard.yaml:6:5: the variable PG_PASSWORD is not set; set it, or write \${PG_PASSWORD:-…} with a default`
    expect(await check(['--deployment', 'production'])).toEqual([missing])
    expect(await check(['--all'])).toEqual([missing])
  })

  test('a misspelt flow, and a flow that declares what no job can have, are found where the file names them', async () => {
    await place.write(
      'flows.mjs',
      `${FLOWS}\nexport const broken = linear({ name: 'broken', posting: { priority: 'URGENT' } }, input(), greet)\n`,
    )
    await place.write(
      'jobboard.yaml',
      `board: memory:check
flows: ./flows.mjs
schedules:
  report: { flow: helo, every: 5m }
flow-defaults:
  hallo: { maxAttempts: 3 }
`,
    )
    const [broken, schedule, defaults, ...others] = await check()
    expect(others).toEqual([])
    expect(broken).toMatch(/^jobboard.yaml:2:1: flow broken: posting: priority must be one of .*URGENT/)
    expect(schedule).toMatch(/^jobboard.yaml:4:13: the modules of flows export no flow helo; did you mean hello\?$/)
    expect(defaults).toMatch(/^jobboard.yaml:6:3: the modules of flows export no flow hallo; did you mean hello\?$/)
  })

  test('lists all mistakes, in the order of their places', async () => {
    await place.write(
      'jobboard.yaml',
      `board: lost
boards:
  a: { uri: zoo:x }
  b: { url: x }
flows: ./nowhere.mjs
hooks: ./nothing.mjs
limits:
  'api/*/x': { concurrency: 1 }
  one: { concurrency: -1 }
  two: { burst: 3 }
  three: { rate: often }
schedules:
  s1: { flow: hello, cron: '61 * * * *' }
  s2: { flow: hello, cron: '1 * * * *', every: 5m }
  s3: { flow: hello, every: 5m, tenants: [nobody] }
  s4: { cron: '1 * * * *' }
conductor:
  concurency: 3
  drainTimeout: soon
  maxJobs: lots
deployments:
  staging:
    conductor: { size: [huge] }
`,
    )
    expect(await check(['--all'])).toMatchInlineSnapshot(`
      [
        "jobboard.yaml:3:8: board zoo:x: unknown scheme zoo:; write sqlite:./jobs.db, zookeeper://127.0.0.1:2181/demo, postgres://127.0.0.1/database, redis://127.0.0.1:6379/0, or memory:",
        "jobboard.yaml:4:3: boards.b.uri is missing: it must be a text",
        "jobboard.yaml:4:8: unknown key url; did you mean uri?",
        "jobboard.yaml:5:1: module nowhere.mjs does not exist: no such file relative to ., and no such package",
        "jobboard.yaml:6:1: module nothing.mjs does not exist: no such file relative to ., and no such package",
        "jobboard.yaml:8:3: limit api/*/x: a pattern has one *, at its end, such as tenant/*",
        "jobboard.yaml:9:10: limits.one.concurrency must be a whole number from 0",
        "jobboard.yaml:10:3: limit two: burst belongs to rate: add it, as in rate: 100/1m",
        "jobboard.yaml:11:12: limits.three.rate must be a number and a time, such as 100/1m, got 'often'",
        "jobboard.yaml:13:22: schedule s1: cron "61 * * * *" is not valid: minute must be from 0 to 59, got "61"; write five fields (minute hour day month weekday), six with seconds first, or @yearly, @annually, @monthly, @weekly, @daily, @hourly",
        "jobboard.yaml:14:22: schedule s2 must have one of cron, every, rrule, at, and has cron, every",
        "jobboard.yaml:15:33: schedule s3: tenants: the file has none; add tenants: [NAME], or remove tenants here",
        "jobboard.yaml:18:3: unknown key concurency; did you mean concurrency?",
        "jobboard.yaml:19:3: conductor.drainTimeout: "soon" is not a duration; write milliseconds or a number with ms, s, m, h or d, such as '10s'",
        "jobboard.yaml:20:3: conductor.maxJobs must be a whole number from 1",
        "jobboard.yaml:23:18: deployments.staging.conductor.size.0 must be one of small, medium, large",
      ]
    `)
  })

  test.each([
    [
      'one deployment has a mistake, which the file has not',
      'deployments: { a: { timeout: 1s }, b: { timeout: soon } }',
      'jobboard.yaml:1:41: timeout: "soon" is not a duration',
    ],
    [
      'tenants of a file without any',
      'schedules: { s: { flow: hello, every: 5m, tenants: all } }',
      'jobboard.yaml:1:43: schedule s: tenants: the file has none',
    ],
    [
      'a limit of a tenant that is there twice',
      'limits: { tenant/a: { concurrency: 1 } }\ntenants: { a: { limit: { concurrency: 2 } } }',
      'jobboard.yaml:2:17: limit tenant/a is there twice',
    ],
    ['two documents', 'timeout: 5s\n---\ntimeout: 6s', 'jobboard.yaml:2:1: a second document begins here'],
    ['a value within itself', 'a: &x\n  b: *x', 'jobboard.yaml:2:6: *x is within its own anchor &x'],
    [
      'an alias of nothing',
      'board: *x\nowner: &x y',
      'jobboard.yaml:1:8: there is no anchor before this alias; put a value that begins with * in quotes',
    ],
    ['a tag', 'owner: !x y', 'jobboard.yaml:1:8: this tag is not known; put a value that begins with ! in quotes'],
    ['a section without a value', 'limits:\n', 'jobboard.yaml:1:1: limits has no value: it must be a map; give it one'],
    ['a list in place of a map', 'boards: [a]', 'jobboard.yaml:1:1: boards must be a map'],
    ['a text in UTF-16', 't\0i\0m\0e\0:\0', 'this is not a text in UTF-8'],
    [
      'a key that is there twice',
      'timeout: 5s\ntimeout: 6s',
      'jobboard.yaml:2:1: this is not valid YAML (Map keys must be unique); this key is there twice: remove one',
    ],
    ['no map', '- a', 'jobboard.yaml:1:1: it must be a map'],
    ['a word that is none of the choices', 'conductor: { logLevel: loud }', 'jobboard.yaml:1:14: conductor.logLevel'],
    ['no port', 'conductor: { health: 99999 }', 'jobboard.yaml:1:14: --health must be a port, or host:port'],
    ['metrics without a port', 'conductor: { metrics: true }', 'jobboard.yaml:1:14: conductor.metrics needs'],
    [
      'a queue that is no name',
      'conductor: { queues: [a*b] }',
      'jobboard.yaml:1:14: conductor: queue "a*b" must not contain',
    ],
    ['a weight of 0', 'conductor: { queues: { a: 0 } }', 'jobboard.yaml:1:'],
    [
      'weights of other boards',
      'board: [redis://a, redis://b]\nconductor: { weights: [3] }',
      'jobboard.yaml:2:14: --weights must have one number for each board: 2 in place of 1',
    ],
    [
      'defaults that no post could have',
      'flow-defaults: { hello: { maxAttempts: 2, backOff: { factor: -1 } } }',
      'jobboard.yaml:1:43: backOff: factor must be a number of at least 1',
    ],
    [
      'a post of a schedule that cannot be',
      'schedules: { s: { flow: hello, every: 5m, post: { backOff: { factor: -1 } } } }',
      'jobboard.yaml:1:51: backOff: factor must be a number of at least 1',
    ],
    ['weights of nothing', 'conductor: { weights: [0] }', 'jobboard.yaml:1:14: conductor.weights.0'],
  ])('%s', async (_, text, says) => {
    await place.write('jobboard.yaml', text)
    expect((await check(['--all'])).join('\n')).toContain(says)
  })

  test('an empty file, and a section without values', async () => {
    await place.write('jobboard.yaml', '')
    expect(await check()).toEqual([])
    await place.write('jobboard.yaml', 'deployments:\n  none:\n')
    expect(await check(['--deployment', 'none'])).toEqual([])
  })

  test('a deployment that does not exist is named, and a similar one', async () => {
    await place.write('jobboard.yaml', CONFIG)
    expect(await check(['--deployment', 'prodction'])).toEqual([
      'there is no deployment "prodction" in jobboard.yaml; did you mean production?',
    ])
  })

  test.each(['board: postgres//jobs:hunter2@db/jobs', 'persistence: //jobs:hunter2@db/jobs'])(
    'a URI without a scheme is not taken for a name, and its password is not shown: %s',
    async (text) => {
      await place.write('jobboard.yaml', text)
      const [fault = '', ...others] = await check(['--all'])
      expect(others).toEqual([])
      expect(fault).toContain('a URI begins with a scheme and a colon')
      expect(fault).not.toContain('hunter2')
      const run = await place.bare(['jobs'])
      expect(run.exitCode).toBe(2)
      expect(run.stderr).not.toContain('hunter2')
    },
  )

  test.each([
    'boards: { a: { uri: redis://a, auth:hunter2 } }',
    'boards: { a: { uri: redis://a, auth: *hunter2 } }',
    'boards: { a: { uri: redis://a, auth: !hunter2 } }',
    `conductor: { concurrency: '\${DB_PASSWORD}', drainTimeout: 'x\${DB_PASSWORD}', logLevel: '\${DB_PASSWORD}' }`,
  ])('a mistake shows no secret: %s', async (text) => {
    await place.write('jobboard.yaml', text)
    const faults = await check(['--all'], { DB_PASSWORD: 'hunter2' })
    expect(faults).not.toEqual([])
    expect(faults.join()).not.toContain('hunter2')
  })

  test('an anchor may stand for many values, and aliases cannot make a value that fills the memory', async () => {
    const tenants = Array.from({ length: 1_000 }, (_, n) => `  t${n}: *common`)
    await place.write(
      'jobboard.yaml',
      `tenants:\n  first: &common { limit: { concurrency: 2 } }\n${tenants.join('\n')}\n`,
    )
    expect(await check(['--all'])).toEqual([])
    const lists = 'abcdefgh'.split('').map((name, n, all) => {
      return `${name}: &${name} [${Array(9)
        .fill(n === 0 ? 'x' : `*${all[n - 1]}`)
        .join(', ')}]`
    })
    await place.write('jobboard.yaml', lists.join('\n'))
    expect((await check(['--all'])).join()).toContain('its aliases make too many values')
  })

  test('conductors do it before they claim, and end with 2', async () => {
    await place.write(
      'jobboard.yaml',
      'flows: ./flows.mjs\nlimits:\n  one: { concurrency: -1 }\nschedules:\n  s: { flow: hello, cron: x }\n',
    )
    const { exitCode, stdout, stderr } = await place.jobboard(['conductor', '--burst'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain('jobboard.yaml:3:10: limits.one.concurrency must be a whole number from 0')
    expect(stderr).toContain('jobboard.yaml:5:')
  })
})

describe('config schema', () => {
  test('prints the schema.json of the package', async () => {
    const published = await readFile(join(ROOT, 'dist/cli/input/config/schema.json'), 'utf8')
    expect(JSON.parse(published)).toEqual(toJsonSchema())
    expect(JSON.parse((await place.bare(['config', 'schema'])).stdout)).toEqual(toJsonSchema())
  })

  test('has not changed by accident', () => {
    // After a change that is meant: compare what `jobboard config schema` prints before and after it, and write the new digest.
    const digest = createHash('sha256').update(JSON.stringify(toJsonSchema())).digest('hex')
    expect(digest).toBe('21282c96a9da6b511f151dc4d61aed37dac773ca53ff9df990143255fcfdc5f3')
  })

  test('describes each key, and refuses others', () => {
    const { properties, additionalProperties } = toJsonSchema() as { properties: object; additionalProperties: boolean }
    expect(Object.keys(properties)).toEqual(Object.keys(DOCUMENT.shape))
    expect(additionalProperties).toBe(false)
  })
})
