/** Faults with which a board still works are shown at /readyz and /metrics, and logged once. */
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { JobBoard } from '../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../src/board/backends/memory/index.ts'
import type { BackendSink, HealthEvent } from '../../src/board/contract/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { input, linear, startConductor, task } from '../../src/index.ts'
import { overrideRole } from '../board/override-role.ts'

class ReportingBackend extends MemoryBackend {
  #sink: BackendSink | undefined

  constructor(...args: ConstructorParameters<typeof MemoryBackend>) {
    super(...args)
    overrideRole(this, 'session', (session) => ({
      open: (sink, options) => {
        this.#sink = sink
        return session.open(sink, options)
      },
    }))
  }

  report(...events: readonly HealthEvent[]): void {
    for (const event of events) this.#sink?.health(event)
  }
}

test('notifications that do not arrive, and backends that do not end', async () => {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(line) })
  const backend = new ReportingBackend({ uri: 'memory:health', space: memorySpace('health') })
  await using board = new JobBoard(backend, { log })
  await boardInternals(board).open()
  const flow = linear('hello', input<object>(), task('greet', { execute: () => undefined }))
  await using conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flow], health: { port: 0 }, metrics: true },
  })
  const read = async (path: string) => (await fetch(`${conductor.healthUrl}${path}`)).text()
  const counters = async () =>
    (await read('/metrics'))
      .split('\n')
      .filter((line) => /^jobboard_(notifications_missed|stopped_backends)/.test(line))
  const logged = (words: string) => lines.filter((line) => line.includes(words)).length

  expect(await counters()).toEqual([
    'jobboard_notifications_missed_total{board="memory:health"} 0',
    'jobboard_stopped_backends_total{board="memory:health"} 0',
  ])
  backend.report('notificationMissed', 'notificationMissed')
  expect(JSON.parse(await read('/readyz'))).not.toHaveProperty('notifications')
  backend.report('notificationMissed', 'notificationMissed', 'backendStopped')
  expect(JSON.parse(await read('/readyz'))).toMatchObject({ healthy: true, notifications: 'missing' })
  expect(logged('do not arrive')).toBe(1)
  backend.report('notificationsArrive')
  expect(JSON.parse(await read('/readyz'))).not.toHaveProperty('notifications')
  expect(logged('arrive again')).toBe(1)
  expect(await counters()).toEqual([
    'jobboard_notifications_missed_total{board="memory:health"} 4',
    'jobboard_stopped_backends_total{board="memory:health"} 1',
  ])
})
