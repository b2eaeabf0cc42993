/** A task that posts its successor with its own key: nothing is posted, and the log says why. */
import { type Logger, pino } from 'pino'
import { expect, test } from 'vitest'
import { type JobBoard, openBoard, startConductor } from '../../src/index.ts'
import { singleTaskFlow } from './conducting.ts'

test('is warned of, once for a job, and for no other key', async () => {
  const lines: string[] = []
  const log: Logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  await using board: JobBoard = await openBoard('memory:', { log })
  const created: boolean[] = []
  const hourly = singleTaskFlow('hourly', async ({ n }) => {
    for (const key of ['hourly', 'hourly', `hourly ${n + 1}`]) {
      const next = await board.post('hourly', { n: n + 1 }, { key, delay: '1h' })
      created.push(next.created)
    }
    await board.post('other', {}, { key: 'hourly' })
  })
  await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [hourly] })
  const job = await board.post(hourly, { n: 1 }, { key: 'hourly' })
  await job.wait()
  expect(created).toEqual([false, false, true])
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, job: job.uuid, name: 'hourly', key: 'hourly', msg: expect.stringContaining('recurring jobs') },
  ])
})
