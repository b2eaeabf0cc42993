/** Jobs whose last owners died: one runs at a time in a process, the others wait for it, and everybody can see that. */
import { expect, onTestFinished, test } from 'vitest'
import type { Job, JobBoard } from '../../../src/board/index.ts'
import { memoryTestBackend } from '../../../src/board/internal.ts'
import { examineJobs } from '../../../src/cli/doctor/jobs.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import type { Conductor, ConductorOptions } from '../../../src/index.ts'
import { ManualClock } from '../../../src/testing/hand-clock.ts'
import { all, claimed, refresh } from '../../board/jobs.ts'
import { singleTaskFlow, startTestConductor } from '../conducting.ts'

/** A conductor publishes its status every two seconds. */
const patient = { timeout: 60_000 }

/** Boards of one place. */
function placeOf(clock: ManualClock): { open(who: string): Promise<JobBoard> } {
  const place = memoryTestBackend({ clock })
  return {
    open: async (who) => {
      const board = await place.open({ who })
      onTestFinished(() => board.close())
      return board
    },
  }
}

/** Posts a job whose first two owners died. */
async function postSuspect(place: ReturnType<typeof placeOf>, board: JobBoard, options: object): Promise<Job> {
  const { name } = { name: '', ...options }
  const job = await board.post('work', { n: 1 }, options)
  for (let death = 0; death < 2; death += 1) {
    const mortal = await place.open('mortal')
    await claimed(mortal, name)
    await mortal.close()
  }
  await refresh(board)
  return job
}

/** A conductor whose jobs run until they are released by name. */
async function startHolding(options: Partial<ConductorOptions>) {
  const started: string[] = []
  const release = createDeferred<void>()
  const work = singleTaskFlow('work', (_, signal) => {
    return Promise.race([
      release.promise,
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ])
  })
  const conductor = await startTestConductor({
    ...{ persistence: 'memory:', flows: [work], concurrency: 8, name: 'worker', health: { port: 0 } },
    ...options,
  } as ConductorOptions)
  conductor.on('started', ({ job }) => void started.push(job.name))
  return { conductor, started, release: () => release.resolve() }
}

async function health(conductor: Conductor): Promise<Record<string, unknown>> {
  return (await fetch(`${conductor.healthUrl}/readyz`)).json() as Promise<Record<string, unknown>>
}

test('a suspect that waits for the place of another one says so, and so does each job that waits behind it', async () => {
  const place = placeOf(new ManualClock())
  const board = await place.open('here')
  const first = await postSuspect(place, board, { name: 'first' })
  const second = await postSuspect(place, board, { name: 'second', resources: { exclusive: ['disk'] } })
  const behind = await board.post('work', { n: 1 }, { name: 'behind', resources: { exclusive: ['disk'] } })
  const { conductor } = await startHolding({ board: await place.open('there') })
  await expect
    .poll(() => board.waitingFor(second), patient)
    .toMatchObject({
      kind: 'suspect',
      holders: [{ uuid: first.uuid, owner: 'worker', since: expect.any(Date) }],
      text: expect.stringMatching(
        new RegExp(`^the last 2 owners of job ${second.uuid} died .* it waits for job ${first.uuid} in worker`),
      ),
    })
  expect(await board.waitingFor(behind)).toMatchObject({
    ...{ kind: 'resource', resource: 'disk' },
    text: expect.stringContaining(`and the last 2 owners of job ${second.uuid} died`),
  })
  expect(await health(conductor)).toMatchObject({ suspect: { othersWait: true } })
})

test('a suspect that is to be cancelled is ended beside another one', async () => {
  const place = placeOf(new ManualClock())
  const board = await place.open('here')
  const first = await postSuspect(place, board, { name: 'first' })
  const second = await postSuspect(place, board, { name: 'second' })
  const { conductor } = await startHolding({ board: await place.open('there') })
  await expect.poll(async () => (await board.waitingFor(second))?.kind, patient).toBe('suspect')
  await board.cancel(second)
  await expect.poll(() => second.state, patient).toBe('TRASHED')
  expect(await all(board.trashed())).toMatchObject([{ name: 'second', reason: expect.stringContaining('cancelled') }])
  expect(first.state).toBe('CLAIMED')
  expect(conductor.running).toBe(1)
})

test('a suspect that hangs gives up its place, also to one of another board of the conductor', async () => {
  const clock = new ManualClock()
  const [one, other] = [placeOf(clock), placeOf(clock)]
  const [here, there] = [await one.open('here'), await other.open('there')]
  await postSuspect(one, here, { name: 'hanging' })
  await postSuspect(other, there, { name: 'innocent' })
  const boards = [await one.open('worker'), await other.open('worker')]
  const { started, conductor } = await startHolding({ boards })
  await expect.poll(async () => (await health(conductor))['suspect'], patient).toMatchObject({ othersWait: true })
  expect(started).toEqual(['hanging'])
  clock.advance('10m')
  await expect.poll(() => started, patient).toEqual(['hanging', 'innocent'])
  expect(conductor.running).toBe(2)
})

test('the doctor names the suspect that another one waits for, on both boards, until it waits no more', async () => {
  const clock = new ManualClock()
  const [one, other] = [placeOf(clock), placeOf(clock)]
  const [here, there] = [await one.open('here'), await other.open('there')]
  const hanging = await postSuspect(one, here, { name: 'hanging' })
  const innocent = await postSuspect(other, there, { name: 'innocent' })
  const { conductor } = await startHolding({ boards: [await one.open('worker'), await other.open('worker')] })
  const examine = async (board: JobBoard) => {
    const found = await examineJobs({ board, unreadable: [], stuckAfter: 3_600_000 })
    return found.filter(({ severity }) => severity !== 'ok')
  }
  await expect
    .poll(() => examine(there), patient)
    .toMatchObject([
      {
        ...{ severity: 'warning', about: 'suspect', advice: expect.not.stringContaining('cancel') },
        text: expect.stringMatching(
          new RegExp(`job ${innocent.uuid} died .* it waits for job ${hanging.uuid} .*in worker since`),
        ),
      },
    ])
  const waitedFor = 'other suspects (of another board) wait for it'
  await expect
    .poll(() => examine(here), patient)
    .toMatchObject([{ severity: 'warning', about: 'suspect', text: expect.stringContaining(waitedFor) }])
  expect(await health(conductor)).toMatchObject({ suspect: { othersWait: true } })
  await there.cancel(innocent)
  await expect.poll(() => innocent.state, patient).toBe('TRASHED')
  expect(await health(conductor)).toMatchObject({ suspect: { othersWait: false } })
})

test('a loop without a conductor names the suspect that it runs itself', async () => {
  const place = placeOf(new ManualClock())
  const board = await place.open('loop')
  const first = await postSuspect(place, board, { name: 'first' })
  const second = await postSuspect(place, board, { name: 'second' })
  const [claim] = await board.claimNext()
  expect(claim.job.uuid).toBe(first.uuid)
  expect(await board.waitingFor(second)).toMatchObject({
    kind: 'suspect',
    holders: [{ uuid: first.uuid, owner: 'loop' }],
  })
  await claim.consume()
  expect(await board.waitingFor(second)).toBeUndefined()
})
