/** Schedules that tenants of `jobboard.yaml` have of their own: on the board of a real conductor, and their mistakes. */
import { afterAll, afterEach, beforeEach, describe, expect } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { usual as test, variant } from '../variant.ts'
import { type CliFolder, createCliFolder, killRemaining } from './workplace.ts'

const FLOWS = `
import { input, linear, schedule, task } from 'jobboard'

const nothing = task('nothing', { execute: async () => undefined })
export const submit = linear({ name: 'submit', posting: { maxAttempts: 2 } }, input(), nothing)
export const clean = linear('clean', input(), nothing)
`
const EXPORTED = `${FLOWS}
export const schedules = [
  schedule('submit', { every: '1h' }, submit, { ce: '.*' }, { tenants: { lhcb: { n: 1 }, atlas: { n: 2 }, cms: {} } }),
]
`

let place: CliFolder
let uri: string

beforeEach(async () => {
  place = await createCliFolder()
  uri = `sqlite:${place.cwd}/jobs.db`
  await place.write('flows.mjs', FLOWS)
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

const config = (text: string) => place.write('jobboard.yaml', `flows: ./flows.mjs\nowner: tests\n${text}`)

/** Runs a conductor until nothing is due, and returns the schedules that it leaves on the board. */
async function declare(args: readonly string[] = []): Promise<Record<string, object>> {
  const { exitCode, stderr } = await place.spawned(['conductor', '--burst', ...args], { env: { JOBBOARD_BOARD: uri } })
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
  await using board = await openBoard(uri)
  return Object.fromEntries(
    (await board.schedules.list()).map(({ id, state, flow, store, spec, tenant }) => {
      const { every, cron } = Object(spec)
      return [id, { rule: every ?? cron, state, flow, store, ...(tenant === undefined ? {} : { tenant }) }]
    }),
  )
}

const COMMON = `
schedules:
  submit: { flow: submit, every: 1h, tenants: all, store: { ce: '.*', vo: '{tenant}' }, post: { maxAttempts: 9 } }
  clean: { flow: clean, cron: '0 3 * * *', tenants: [lhcb, atlas] }
`

test('the entry of a tenant replaces the common one as a whole, for this tenant alone', async () => {
  await config(`${COMMON}
tenants:
  lhcb:
    store: { site: cern, ce: none }
    schedules:
      submit: { cron: '0 */6 * * *', store: { ce: '{tenant}.cern', n: 1 } }
      clean: { enabled: false }
      merge: { flow: clean, every: 5m, post: { name: 'merge of {tenant}' } }
    limit: { concurrency: 5 }
  atlas:
`)
  expect(await place.bare(['config', 'check'])).toMatchObject({ exitCode: 0, stderr: '' })
  const atlas = { state: 'active', tenant: 'atlas' }
  const lhcb = { state: 'active', tenant: 'lhcb' }
  const expected = {
    'submit/atlas': { ...atlas, rule: '1h', flow: 'submit', store: { ce: '.*', vo: 'atlas' } },
    'clean/atlas': { ...atlas, rule: '0 3 * * *', flow: 'clean', store: {} },
    'submit/lhcb': { ...lhcb, rule: '0 */6 * * *', flow: 'submit', store: { site: 'cern', ce: 'lhcb.cern', n: 1 } },
    'clean/lhcb': { ...lhcb, state: 'paused', rule: '0 3 * * *', flow: 'clean', store: { site: 'cern', ce: 'none' } },
    'merge/lhcb': { ...lhcb, rule: '5m', flow: 'clean', store: { site: 'cern', ce: 'none' } },
  }
  expect(await declare()).toEqual(expected)
  await using board = await openBoard(uri)
  expect(await board.limits.list()).toMatchObject([{ key: 'tenant/lhcb', concurrency: 5 }])
  const posted = async (id: string) => board.find(await board.schedules.trigger(id))
  // `post` of the common entry is replaced, too: what is left is what the flow says.
  expect(await posted('submit/lhcb')).toMatchObject({ maxAttempts: 2 })
  expect(await posted('submit/atlas')).toMatchObject({ maxAttempts: 9 })
  expect(await posted('merge/lhcb')).toMatchObject({ name: 'merge of lhcb' })
  const { stdout } = await place.bare(['schedule', 'list', '--board', uri])
  for (const id of Object.keys(expected)) expect(stdout).toContain(id)
})

variant(
  'without its entry a tenant has the common schedule again, and what only the tenant had is removed',
  async () => {
    const own = 'submit: { every: 7h }\n      merge: { flow: clean, every: 5m }'
    await config(`${COMMON}tenants:\n  atlas:\n  lhcb:\n    schedules:\n      ${own}\n`)
    expect(await declare()).toMatchObject({ 'submit/lhcb': { rule: '7h' }, 'merge/lhcb': {} })
    await config(`${COMMON}tenants: [lhcb, atlas]\n`)
    const left = await declare()
    expect(Object.keys(left).sort()).toEqual(['clean/atlas', 'clean/lhcb', 'submit/atlas', 'submit/lhcb'])
    expect(left['submit/lhcb']).toMatchObject({ rule: '1h' })
  },
)

variant('a tenant switches on what is off for all', async () => {
  await config(`
schedules:
  submit: { flow: submit, every: 1h, tenants: all, enabled: false }
tenants:
  lhcb: { schedules: { submit: { enabled: true } } }
  atlas:
`)
  expect(await declare()).toMatchObject({ 'submit/lhcb': { state: 'active' }, 'submit/atlas': { state: 'paused' } })
})

variant('a schedule that a module exports for tenants is a common one, also where the file changes it', async () => {
  await place.write('flows.mjs', EXPORTED)
  const tenants = `
tenants:
  lhcb: { schedules: { submit: { cron: '0 */6 * * *', store: { ce: cern } } } }
  cms: { schedules: { submit: { enabled: false } } }
`
  const own = {
    'submit/lhcb': { rule: '0 */6 * * *', flow: 'submit', state: 'active', tenant: 'lhcb', store: { ce: 'cern' } },
    'submit/cms': { rule: '1h', flow: 'submit', state: 'paused', tenant: 'cms', store: { ce: '.*' } },
  }
  const atlas = { rule: '1h', flow: 'submit', state: 'active', tenant: 'atlas', store: { ce: '.*', n: 2 } }
  await config(tenants)
  expect(await place.bare(['config', 'check'])).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await declare()).toEqual({ ...own, 'submit/atlas': atlas })
  await config(`${tenants}schedules: { submit: { every: 2h } }\n`)
  expect(await declare()).toEqual({
    ...own,
    'submit/cms': { ...own['submit/cms'], rule: '2h' },
    'submit/atlas': { ...atlas, rule: '2h' },
  })
})

variant('a deployment changes the entry of a tenant key by key', async () => {
  await config(`${COMMON}
tenants:
  atlas:
  lhcb: { schedules: { submit: { every: 7h, store: { ce: cern } } } }
deployments:
  staging: { tenants: { lhcb: { schedules: { submit: { enabled: false } } } } }
`)
  expect(await place.bare(['config', 'check', '--all'])).toMatchObject({ exitCode: 0, stderr: '' })
  expect(await declare(['--deployment', 'staging'])).toMatchObject({
    'submit/lhcb': { rule: '7h', state: 'paused', store: { ce: 'cern' } },
  })
})

describe('a mistake is one line with its place', () => {
  const tenants = (entry: string) => `${COMMON}tenants:\n  atlas:\n  lhcb:\n    schedules:\n      ${entry}\n  cms:\n`
  test.each([
    ['an unknown key', 'submit: { crn: "0 6 * * *" }', '11:17: unknown key crn; did you mean cron?'],
    [
      'tenants of a tenant',
      'submit: { every: 1h, tenants: all }',
      '11:28: unknown key tenants; the keys are flow, cron',
    ],
    [
      'an unknown schedule without a flow',
      'submt: { every: 1h }',
      '11:7: schedule submt: there is no common schedule of this name; give it a flow, or correct the name; did you mean submit?',
    ],
    [
      'a switch of an unknown schedule',
      'cleen: { enabled: false }',
      '11:7: schedule cleen: there is no common schedule of this name; give it a flow, or correct the name; did you mean clean?',
    ],
    [
      'no rule',
      'submit: { store: { ce: x } }',
      '11:7: schedule submit of tenant lhcb has none of cron, every, rrule, at: it replaces the common schedule as a whole; add its rule, or write only enabled: false',
    ],
    ['a wrong rule', 'submit: { cron: "61 * * * *" }', '11:17: schedule submit: '],
    ['a post that cannot be', 'submit: { every: 1h, post: { backOff: { factor: -1 } } }', '11:36: backOff: factor'],
    ['an unknown flow', 'submit: { flow: submti, every: 1h }', '11:17: the modules of flows export no flow submti'],
  ])('%s', async (_, entry, says) => {
    await config(tenants(entry))
    const { exitCode, stderr } = await place.bare(['config', 'check'])
    const [line = '', ...others] = stderr.trimEnd().split('\n')
    expect({ exitCode, others }).toEqual({ exitCode: 2, others: [] })
    expect(line.startsWith(`jobboard: jobboard.yaml:${says}`), line).toBe(true)
  })

  test('a common schedule that is not for the tenant', async () => {
    await config(`${COMMON}tenants:\n  lhcb:\n  atlas:\n  cms:\n    schedules:\n      clean: { every: 1h }\n`)
    const fault =
      'jobboard: jobboard.yaml:12:7: schedule clean: the common schedule is not for cms; add cms to its tenants, or choose another name here\n'
    expect(await place.bare(['config', 'check'])).toMatchObject({ exitCode: 2, stderr: fault })
    expect(await place.spawned(['conductor', '--burst'])).toMatchObject({ exitCode: 2, stderr: fault })
  })

  variant('a schedule that no loaded module exports is found where a conductor starts', async () => {
    await place.write('flows.mjs', EXPORTED)
    await config('tenants:\n  dune: { schedules: { submit: { every: 1h }, clen: { enabled: false } } }\n')
    expect((await place.bare(['config', 'check'])).stderr.split('\n').slice(0, -1)).toEqual([
      expect.stringMatching(/:4:24: schedule submit: the common schedule is not for dune; add dune to its tenants/),
      expect.stringMatching(/:4:47: schedule clen: there is no common schedule of this name; give it a flow/),
    ])
    expect(await place.spawned(['conductor', '--burst'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/jobboard.yaml:4:24: schedule submit: the common schedule is not for dune/),
    })
  })
})
