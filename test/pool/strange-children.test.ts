/** Children whose code does what no worker should do: nobody else must suffer from it. */
import { expect, onTestFinished, vi } from 'vitest'
import { AbortFlag } from '../../src/core/async/abort-flag.ts'
import { ChildDied, ChildUnavailable, OutOfMemory, Timeout } from '../../src/core/errors.ts'
import { describeError, WrappedFailure } from '../../src/core/failure.ts'
import { poolSettings } from '../../src/pool/index.ts'
import { rejectionOf } from '../board/events.ts'
import { usual as test, testRows, variant } from '../variant.ts'
import { newFile, pidsIn, testPool, whenDead } from './pools.ts'

const NUL = Buffer.alloc(8)
/** What a child may write in place of a message; its first work has the number 1. */
const WRONG: readonly (readonly [string, object])[] = [
  ['nothing', { messages: [null] }],
  ['a text', { messages: ['ready'] }],
  ['a map', { messages: [new Map([['kind', 'done']])] }],
  ['a message without a kind', { messages: [{}] }],
  ['an unknown kind', { messages: [{ kind: 'toString', number: 1 }] }],
  ['a kind that is no text', { messages: [{ kind: ['done'], number: 1 }] }],
  ['a number that is a text', { messages: [{ kind: 'begun', number: '1' }] }],
  ['a number that is not whole', { messages: [{ kind: 'done', number: 1.5, result: 1 }] }],
  ['a number without end', { messages: [{ kind: 'note', number: Number.NaN, note: 1 }] }],
  ['a question that is not numbered', { messages: [{ kind: 'ask', number: 1, question: {}, content: 1 }] }],
  ['the same question twice', { messages: [0, 0].map((question) => ({ kind: 'ask', number: 1, question, asked: 1 })) }],
  ['a failure that is a text', { messages: [{ kind: 'failed', number: 1, failure: 'x', isLast: false }] }],
  ['no failure', { messages: [{ kind: 'fault', number: 1 }] }],
  ['an end that is neither', { messages: [{ kind: 'failed', number: 1, failure: {}, isLast: 'no' }] }],
  ['a refusal while it works', { messages: [{ kind: 'refused', failure: { name: 'Error', message: 'x' } }] }],
  ['a note that its owner refuses', { messages: [{ kind: 'note', number: 1, note: 5 }] }],
  ['bytes that are no message', { bytes: Buffer.concat([Buffer.from([0, 0, 0, 8]), NUL]) }],
  ['a size without end', { bytes: Buffer.from([255, 255, 255, 255, 0]) }],
]

// One of each kind: no message, a message of the wrong shape, one at the wrong time, a note that is refused, and bytes.
const USUAL = [
  'nothing',
  'an unknown kind',
  'a number that is not whole',
  'a refusal while it works',
  'a note that its owner refuses',
  'a size without end',
]

testRows(WRONG, ([name]) => USUAL.includes(name))(
  'a child that sends %s is killed, and its work alone fails',
  async (_, sent) => {
    await using pool = await testPool({ min: 2, max: 2 })
    const file = await newFile()
    const stop = new AbortFlag()
    const others = pool.run({ kind: 'heed', file }, { stop })
    await pidsIn(file, 1)
    const onNote = (note: unknown) => {
      if (note === 5) throw new TypeError('the note is a number')
    }
    const onAsk = () => new Promise<never>(() => undefined)
    const error = await rejectionOf(pool.run({ kind: 'tell', ...sent, last: 'wait' }, { onNote, onAsk }))
    expect(error).toBeInstanceOf(ChildDied)
    expect(String(error)).toContain('has sent a message that is not one of the pool')
    expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
    stop.abort(new Timeout('enough'))
    expect(await rejectionOf(others)).toMatchObject({ name: 'WrappedFailure' })
  },
)

test('messages about work of others, and after the end of its own, are ignored', async () => {
  await using pool = await testPool({ max: 1 })
  const notes: unknown[] = []
  const of = (number: number) => [
    { kind: 'note', number, note: number },
    { kind: 'done', number, result: 'forged' },
    { kind: 'failed', number, failure: { name: 'Error', message: 'forged' }, isLast: false },
    { kind: 'drop', number, question: 7 },
  ]
  const [first, other] = [0, 2].map(of)
  const pid = await pool.run(
    { kind: 'tell', messages: [...(first ?? []), ...(other ?? [])] },
    { onNote: (note) => notes.push(note) },
  )
  expect(notes).toEqual([])
  const late = [
    { kind: 'done', number: 2, result: 'early' },
    { kind: 'done', number: 2, result: 'again' },
  ]
  expect(await pool.run({ kind: 'tell', messages: late })).toBe('early')
  expect(await pool.run({ kind: 'pid' })).toBe(pid)
})

variant.each([false, true])('a failure that is its own cause is cut, also with very many (%j)', async (isWide) => {
  await using pool = await testPool({ max: 1 })
  const error = await rejectionOf(pool.run({ kind: 'cycle', isWide, number: 1 }))
  expect(error).toBeInstanceOf(WrappedFailure)
  expect(JSON.stringify((error as WrappedFailure).failures).length).toBeLessThan(10_000)
  expect(describeError(error)).toContain('of itself')
})

test('a child that says that it ends, and does not, is killed', async () => {
  await using pool = await testPool({ max: 1 })
  const failure = { name: 'Error', message: 'the last one' }
  const messages = [{ kind: 'failed', number: 1, failure, isLast: true }]
  const error = await rejectionOf(pool.run({ kind: 'tell', messages, last: 'wait' }))
  expect(String(error)).toContain('the last one')
})

variant('a child that asks without end is killed, and what it sends is not kept', async () => {
  await using pool = await testPool({ max: 1 })
  const onAsk = () => new Promise<never>(() => undefined)
  const message = { kind: 'ask', number: 1, asked: 'x'.repeat(1_000) }
  const before = process.memoryUsage().rss
  const error = await rejectionOf(pool.run({ kind: 'floodChannel', message, count: 200_000 }, { onAsk }))
  expect(error).toBeInstanceOf(ChildDied)
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1_024 ** 2)
})

variant('a child that notes without a pause is read in turns: this process goes on with its other work', async () => {
  await using pool = await testPool({ max: 1 })
  let [notes, turns] = [0, 0]
  const onNote = () => {
    notes += 1
  }
  const timer = setInterval(() => {
    turns += 1
  }, 1)
  const message = { kind: 'note', number: 1, note: 'x' }
  await pool.run({ kind: 'floodChannel', message, count: 50_000 }, { onNote })
  clearInterval(timer)
  expect(notes).toBe(50_000)
  // 50,000 notes take ten periods at least.
  expect(turns).toBeGreaterThan(50)
})

test('children get the variables that programs need, and those that the pool names, and no others', async () => {
  const given = {
    PGPASSWORD: 'hunter2',
    JOBBOARD_BOARD: 'b',
    JOBBOARD_LOGBOOK_KEY: 'k',
    AWS_REGION: 'r',
    DATABASE_URL: 'd',
  }
  for (const [name, value] of Object.entries({ ...given, LC_ALL: 'C', TZ: 'UTC' })) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  await using plain = await testPool({ max: 1 })
  const environment = await plain.run({ kind: 'environment' })
  expect(environment).toMatchObject({ PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' })
  for (const name of Object.keys(given)) expect(environment).not.toHaveProperty(name)
  await using named = await testPool({ max: 1, env: ['AWS_*', 'DATABASE_URL'] })
  const more = await named.run({ kind: 'environment' })
  expect(more).toMatchObject({ AWS_REGION: 'r', DATABASE_URL: 'd' })
  expect(more).not.toHaveProperty('PGPASSWORD')
  for (const env of ['PATH', [1], ['A=B'], ['*']])
    expect(() => poolSettings({ env: env as never })).toThrow('pool.env must be')
})

test('a fault of earlier work is no failure of the work that is under way', async () => {
  await using pool = await testPool({ max: 1 })
  const file = await newFile()
  await pool.run({ kind: 'lateFault', file })
  const error = await rejectionOf(pool.run({ kind: 'ignore', file }))
  expect(error).toBeInstanceOf(ChildUnavailable)
  expect(String(error)).toContain('code that does not belong to this work has failed')
  expect(String((error as Error).cause)).toContain('of the first work')
  expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
})

variant('a child that closes its channel is killed, and its work does not wait for ever', async () => {
  await using pool = await testPool({ max: 1 })
  const file = await newFile()
  await pool.run({ kind: 'disconnect', file })
  const [pid = 0] = await pidsIn(file, 1)
  const next = await pool.run({ kind: 'echo', value: 1 }).catch((error: unknown) => error)
  if (next !== 1) expect(next).toBeInstanceOf(ChildDied)
  await whenDead([pid])
  expect(await pool.run({ kind: 'echo', value: 2 })).toBe(2)
})

test('work with too little memory fails, and keeps no other work from being done', async () => {
  await using pool = await testPool({ max: 2 })
  const memory = 40 * 1_024 ** 2
  for (let round = 0; round < 6; round += 1)
    expect(await rejectionOf(pool.run({ kind: 'pid' }, { memory }))).toBeInstanceOf(OutOfMemory)
  expect(pool.pool.refusal).toBeUndefined()
  expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
  expect(pool.events.filter(({ kind }) => kind === 'start-failed')).toEqual([])
})

test('while children live, starts that fail keep them from no work', async () => {
  const file = await newFile()
  await using pool = await testPool({ min: 1, max: 2 }, { settings: { fails: 'while', file } })
  const { writeFile } = await import('node:fs/promises')
  await writeFile(file, '')
  const asked = Array.from({ length: 8 }, (_, value) => pool.run({ kind: 'visit', file: `${file}-${value}` }))
  await Promise.all(asked)
  await vi.waitFor(() => expect(pool.events.filter(({ kind }) => kind === 'start-failed').length).toBeGreaterThan(0), {
    timeout: 30_000,
  })
  expect(pool.pool.refusal).toBeUndefined()
  expect(await pool.run({ kind: 'echo', value: 1 })).toBe(1)
})
