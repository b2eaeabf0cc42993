/** What settings of flows make of postings. */
import { expect, test } from 'vitest'
import { makePosting, type PostOptions } from '../../../src/board/model/posting/post-options.ts'
import { FlowRules } from '../../../src/board/settings/rules.ts'
import type { StoredSettings } from '../../../src/board/settings/settings.ts'

const rulesOf = (settings: Readonly<Record<string, StoredSettings>>) =>
  new FlowRules(
    Object.entries(settings).map(([id, each]) => ({ id, revision: 1, value: { settings: each, by: 'ada', at: 0 } })),
  )
const postingOf = (options: PostOptions = {}) =>
  makePosting({ ...options, name: 'job', details: { flow: 'report', store: {} } })

test('a posting to which nothing applies is not copied', () => {
  const posting = postingOf()
  for (const rules of [rulesOf({}), rulesOf({ other: { maxAttempts: 1 } }), rulesOf({ report: { keepResults: true } })])
    expect([rules.applyTo(posting), rules.withPosted(posting)]).toEqual([posting, posting])
})

test('names of flows are no keys of objects', () => {
  const rules = rulesOf({ '*': { maxAttempts: 2 }, constructor: { maxAttempts: 5 } })
  for (const [flow, value] of [
    ['__proto__', 2],
    ['constructor', 5],
    ['a*', 2],
  ] as const)
    expect(rules.ruleOf(flow).applied.get('maxAttempts')?.value).toBe(value)
})

test('a job that was replaced expires as long after its newest post as the setting says', () => {
  const rules = rulesOf({ report: { expiresAfter: 3_000 } })
  const replaced = { ...postingOf({ expiresAfter: '5s' }), replacedAfter: 2_000 }
  expect(rules.applyTo(replaced).expiresAfter).toBe(5_000)
  expect(rules.applyTo(postingOf()).expiresAfter).toBe(3_000)
})

test('retry in place of fail leaves the field out', () => {
  const rules = rulesOf({ report: { onOwnerLost: 'retry' } })
  expect('onOwnerLost' in rules.applyTo(postingOf({ onOwnerLost: 'fail' }))).toBe(false)
  const explicit = { ...postingOf({ onOwnerLost: 'fail' }), explicit: ['onOwnerLost'] }
  expect(rules.applyTo(explicit)).toBe(explicit)
})

test('a queue replaces the size of the code, and the default queue is left out', () => {
  const posting = postingOf({ queue: 'large' })
  expect(rulesOf({ '*': { queue: 'bulk' } }).withPosted(posting).queue).toBe('bulk')
  expect('queue' in rulesOf({ '*': { queue: 'default' } }).withPosted(posting)).toBe(false)
})
