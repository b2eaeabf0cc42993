/** Schedules that their declaration switches off and on, beside pauses of operators. */
import { expect, test } from 'vitest'
import { input, linear, type ScheduleOptions, schedule, task } from '../../../src/index.ts'
import { workbench } from '../../../src/testing/index.ts'

const report = linear('report', input(), task('write', { execute: () => undefined }))
const hourly = (options: ScheduleOptions = {}) => schedule('hourly', { every: '1h' }, report, {}, options)

async function bench() {
  const opened = await workbench({ flows: [report] })
  const { schedules } = opened.board
  return {
    ...{ opened, schedules, put: (options?: ScheduleOptions) => schedules.put(hourly(options)) },
    show: () => schedules.show('hourly'),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

test('a schedule that is not enabled is paused by its declaration, and has no next time', async () => {
  await using place = await bench()
  await place.put({ enabled: false })
  expect(await place.show()).toMatchObject({
    state: 'paused',
    paused: { by: 'its declaration', reason: 'enabled: false' },
  })
  await place.put({ enabled: true })
  const shown = await place.show()
  expect(shown.state).toBe('active')
  expect(shown.paused).toBeUndefined()
})

test('times that passed while it was not enabled are not caught up', async () => {
  await using place = await bench()
  await place.put({ catchUp: 'latest' })
  await place.put({ catchUp: 'latest', enabled: false })
  place.opened.clock.advance('5h')
  await place.put({ catchUp: 'latest' })
  await place.opened.drain()
  expect((await place.show()).counts?.fired).toBe(0)
  place.opened.clock.advance('1h')
  await place.opened.drain()
  expect((await place.show()).counts?.fired).toBe(1)
})

test('a pause of an operator stays, whatever the declaration says', async () => {
  await using place = await bench()
  await place.put()
  await place.schedules.pause('hourly', { by: 'ada', reason: 'audit' })
  await place.put({ enabled: false })
  await place.put({ enabled: true })
  expect((await place.show()).paused).toMatchObject({ by: 'ada', reason: 'audit' })
})

test('an operator can pause one that is not enabled: then it stays paused', async () => {
  await using place = await bench()
  await place.put({ enabled: false })
  await place.schedules.pause('hourly', { by: 'ada', reason: 'broken disk' })
  await place.put({ enabled: true })
  expect((await place.show()).paused).toMatchObject({ by: 'ada', reason: 'broken disk' })
})

test('an operator can resume one that is not enabled', async () => {
  await using place = await bench()
  await place.put({ enabled: false })
  await place.schedules.resume('hourly')
  expect((await place.show()).state).toBe('active')
})

test('enabled must be true or false, and cannot be edited', async () => {
  expect(() => hourly({ enabled: 'no' as never })).toThrow('schedule hourly: enabled must be true or false')
  await using place = await bench()
  await place.put()
  await expect(place.schedules.edit('hourly', { enabled: false } as never)).rejects.toThrow('enabled')
})
