/** What a process knows of a job that another one runs: its run and its attempts, as `track` and web services show them. */
import { expect, test, vi } from 'vitest'
import { all, claimed, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

/** A busy machine may take long to deliver a change. */
const DELIVERY = { timeout: 30_000 }

export function elsewhereContract({ open }: Place): void {
  test('a job that is held shows the run that another process has begun, and the failed ones before', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const job = await here.post('flow', {}, { name: 'job', backOff: { first: 0 } })
    const first = await claimed(there, 'job')
    const running = { who: 'there', at: expect.any(Date) }
    await vi.waitFor(() => expect(job).toMatchObject({ state: 'CLAIMED', runs: 1, attempts: [running] }), DELIVERY)
    await first.abandon({ failed: true, reason: 'boom 1' })
    await claimed(there, 'job')
    await vi.waitFor(() => expect(job.runs).toBe(2), DELIVERY)
    expect(job.attempts).toEqual([{ ...running, ended: 'failed', reason: 'boom 1' }, running])
  })

  test('a job that is looked for shows the run at once', async () => {
    const [here, there] = await Promise.all([open(), open({ who: 'there' })])
    await here.post('flow', {}, { name: 'job' })
    await refresh(there)
    const { job } = await claimed(there, 'job')
    await refresh(here)
    expect(await here.find(job.uuid)).toMatchObject({ runs: 1, attempts: [{ who: 'there' }] })
    const listed = await all(here.jobs({ ensureFresh: true }))
    expect(listed).toMatchObject([{ runs: 1, attempts: [{ who: 'there' }] }])
  })

  test('a job that another process has trashed has all of its attempts when the wait for it ends', async () => {
    const [here, there] = await Promise.all([open(), open({ who: 'there' })])
    const job = await here.post('flow', {}, { name: 'job', backOff: { first: 0 } })
    const ended = job.wait()
    await (await claimed(there, 'job')).abandon({ failed: true, reason: 'boom 1' })
    const failure = { name: 'Error', message: 'boom 2', stack: '', causes: [] }
    await (await claimed(there, 'job')).trash({ reason: 'boom 2', failure })
    expect(await ended).toBe('TRASHED')
    expect(job.attempts).toMatchObject([
      { who: 'there', ended: 'failed', reason: 'boom 1' },
      { who: 'there', ended: 'failed', reason: 'boom 2' },
    ])
    expect(job.runs).toBe(2)
  })
}
