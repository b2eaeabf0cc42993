/** What a process that only posts knows of the settings of flows: at most 30 s late, for one small request. */
import { expect, test } from 'vitest'
import { PostSettings, type PostSettingsOptions } from '../../../src/board/settings/post-settings.ts'
import { FlowRules, NO_FLOW_RULES } from '../../../src/board/settings/rules.ts'
import { AccessDenied, NotConnected } from '../../../src/core/errors.ts'
import { rejectionOf } from '../events.ts'

function setup({ shared = false } = {}) {
  const at = {
    now: 0,
    revision: 0,
    queue: 'one',
    fails: undefined as Error | undefined,
    watched: undefined as FlowRules | undefined,
    /** Resolves when a list arrives that was read before. */
    arrival: undefined as Promise<void> | undefined,
  }
  const requests: string[] = []
  const store: PostSettingsOptions['store'] = {
    list: async () => {
      requests.push('list')
      const value = { settings: { queue: at.queue }, by: 'ada', at: 0 }
      const read = [{ id: 'report', revision: at.revision, value }]
      await at.arrival
      return read
    },
  }
  const settings = new PostSettings({
    backend: {
      shared,
      limits: {
        revision: async () => {
          requests.push('revision')
          if (at.fails) throw at.fails
          return at.revision
        },
      },
    },
    store,
    onUnreadable: () => undefined,
    watched: () => at.watched,
    now: () => at.now,
  })
  const queue = () => settings.rules.ruleOf('report').applied.get('queue')?.value
  return { at, requests, settings, queue }
}

test('the first post reads, and the next ones do not', async () => {
  const { at, requests, settings, queue } = setup()
  at.revision = 5
  await settings.whenKnown()
  expect(queue()).toBe('one')
  at.now = 19_999
  expect(settings.whenKnown()).toBeUndefined()
  expect(requests).toEqual(['revision', 'list'])
})

test('a board without settings costs one small request in 20 s', async () => {
  const { at, requests, settings } = setup()
  for (at.now = 0; at.now < 100_000; at.now += 1_000) await settings.whenKnown()
  expect(requests).toEqual(Array(5).fill('revision'))
})

test('after 20 s they are read beside the posts, and after 30 s a post waits for them', async () => {
  const { at, requests, settings, queue } = setup()
  await settings.whenKnown()
  Object.assign(at, { now: 20_000, revision: 6, queue: 'two' })
  expect(settings.whenKnown()).toBeUndefined()
  await expect.poll(queue).toBe('two')
  Object.assign(at, { now: 49_999, revision: 7, queue: 'three' })
  const waiting = settings.whenKnown()
  expect(waiting).toBeUndefined()
  await expect.poll(queue).toBe('three')
  Object.assign(at, { now: 79_999, revision: 8, queue: 'four' })
  await settings.whenKnown()
  expect(queue()).toBe('four')
  expect(requests.filter((each) => each === 'list')).toHaveLength(3)
})

test('a change of this process is read with its next post', async () => {
  const { at, settings, queue } = setup()
  await settings.whenKnown()
  Object.assign(at, { revision: 6, queue: 'two' })
  settings.expire()
  await settings.whenKnown()
  expect(queue()).toBe('two')
})

test('a change of this process during a read is read again', async () => {
  const { at, requests, settings, queue } = setup()
  let arrive = () => {}
  const arrival = new Promise<void>((resolve) => {
    arrive = resolve
  })
  Object.assign(at, { revision: 5, arrival })
  const before = settings.whenKnown()
  await expect.poll(() => requests).toContain('list')
  Object.assign(at, { revision: 6, queue: 'two', arrival: undefined })
  settings.expire()
  const after = settings.whenKnown()
  arrive()
  await after
  expect(queue()).toBe('two')
  await before
})

test('after the servers have lost their data, an equal revision is read again', async () => {
  const { at, settings, queue } = setup()
  at.revision = 5
  await settings.whenKnown()
  Object.assign(at, { queue: 'two' })
  settings.forget()
  await settings.whenKnown()
  expect(queue()).toBe('two')
})

test('without servers, a post that has to wait for the settings fails, and one that knows them goes on', async () => {
  const { at, settings, queue } = setup()
  at.fails = new NotConnected('away')
  expect(await rejectionOf(Promise.resolve(settings.whenKnown()))).toBe(at.fails)
  Object.assign(at, { fails: undefined, revision: 5 })
  await settings.whenKnown()
  Object.assign(at, { fails: new NotConnected('away'), now: 25_000 })
  expect(settings.whenKnown()).toBeUndefined()
  expect(queue()).toBe('one')
})

test('a user that may not read them posts without', async () => {
  const { at, settings, queue } = setup()
  at.fails = new AccessDenied('may only post')
  await settings.whenKnown()
  expect(queue()).toBeUndefined()
  expect(settings.whenKnown()).toBeUndefined()
})

test('nothing is read where the settings are watched, or where there can be none', async () => {
  const { at, requests, settings } = setup()
  at.watched = new FlowRules()
  expect(settings.whenKnown()).toBeUndefined()
  expect(settings.rules).toBe(at.watched)
  const shared = setup({ shared: true })
  expect(shared.settings.whenKnown()).toBeUndefined()
  expect(shared.settings.rules).toBe(NO_FLOW_RULES)
  expect([...requests, ...shared.requests]).toEqual([])
})
