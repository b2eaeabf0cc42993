/** Services with scopes: what is made when, in which order, what is disposed of, and what a service that fails does to jobs. */

import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { describe, expect, onTestFinished } from 'vitest'
import {
  type Context,
  type DefinedServices,
  defineServices,
  input,
  linear,
  openBoard,
  runFlow,
  service,
  startConductor,
  task,
} from '../../../src/index.ts'
import { withServices, workbench } from '../../../src/testing/index.ts'
import { all } from '../../board/jobs.ts'
import { compiled } from '../../support/compiled.ts'
import { usual as test, variant } from '../../variant.ts'
import { isolated, services } from './isolated-flows.ts'

interface Tenant {
  readonly name: string
  readonly db: Database
}
interface Database {
  readonly rows: string[]
}

const write = task('write', {
  requires: ['row'],
  execute: ({ row }: { row: string }, { services }: Context<{ db: Database; tenant: Tenant }>) => {
    services.tenant.db.rows.push(`${services.tenant.name}: ${row}`)
  },
})
const flow = linear('import', input<{ row: string }>(), write)
const places = { persistence: 'memory:', flows: [flow] } as const

function setup() {
  const rows: string[] = []
  const services = defineServices({
    db: service(
      async () => {
        rows.push('db made')
        return { rows }
      },
      { dispose: () => rows.push('db ended') },
    ),
    tenant: service(
      ({ db }: { db: Database }, { job }) => {
        const name = String(job?.details['tenant'] ?? 'nobody')
        db.rows.push(`${name} made`)
        return { name, db, [Symbol.asyncDispose]: async () => void db.rows.push(`${name} ended`) }
      },
      { scope: 'job' },
    ),
  })
  return { rows, services }
}

describe('services with scopes', () => {
  test('are made once for the process, and for each run of a job, and disposed of in the reverse order', async () => {
    await using board = await openBoard('memory:')
    const { rows, services } = setup()
    const conductor = await startConductor({ ...places, board, services })
    expect(rows).toEqual(['db made'])
    for (const tenant of ['ada', 'bob']) await (await board.post(flow, { row: 'r' }, { details: { tenant } })).wait()
    await conductor.stop()
    expect(rows).toEqual([
      'db made',
      ...['ada made', 'ada: r', 'ada ended', 'bob made', 'bob: r', 'bob ended'],
      'db ended',
    ])
  })

  test('are made by runFlow, too, which has no job without a board', async () => {
    const { rows, services } = setup()
    await runFlow(flow, { row: 'r' }, { services })
    expect(rows).toEqual(['db made', 'nobody made', 'nobody: r', 'nobody ended', 'db ended'])
  })

  test('can be replaced in tests, and what replaces them is not disposed of', async () => {
    const { rows, services } = setup()
    const db: Database & Disposable = { rows: [], [Symbol.dispose]: () => db.rows.push('fake ended') }
    await using bench = await workbench({ flows: [flow], services: withServices(services, { db }) })
    await bench.board.post(flow, { row: 'r' })
    await bench.drain()
    expect(db.rows).toEqual(['nobody made', 'nobody: r', 'nobody ended'])
    expect(rows).toEqual([])
    expect(() => withServices(services, { mailer: 1 } as never)).toThrow(
      'there is no service mailer; the services are db, tenant',
    )
  })
})

variant('in a child process they are made for each task, and those of the process once', async () => {
  await using board = await openBoard('memory:')
  const pool = {
    module: await compiled(fileURLToPath(new URL('./isolated-flows.ts', import.meta.url)), { library: 'built' }),
    max: 1,
  }
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [isolated], services, pool })
  onTestFinished(() => conductor.stop())
  const details = { tenant: 'ada' }
  const job = await board.post(isolated, {}, { details })
  const { results } = await board.result(job, { flow: isolated })
  expect(results).toEqual({ first: 'process 1, job 1 of ada', second: 'process 1, job 2 of ada' })
})

describe('a service that cannot be made', () => {
  const failing = (fail: () => void) =>
    defineServices({
      db: service(() => ({ rows: [] as string[] })),
      tenant: service(
        ({ db }: { db: Database }) => {
          fail()
          return { name: 'x', db }
        },
        { scope: 'job' },
      ),
    })

  test('for a job fails its run, which is tried again', async () => {
    let runs = 0
    const services = failing(() => {
      runs += 1
      if (runs === 1) throw new Error('the tenant is being moved')
    })
    await using bench = await workbench({ flows: [flow], services })
    const job = await bench.board.post(flow, { row: 'r' })
    await bench.drain()
    const [waiting] = await all(bench.board.jobs())
    expect(waiting?.attempts).toMatchObject([{ reason: 'Error: the tenant is being moved' }])
    bench.clock.advance('1h')
    await bench.drain()
    expect(await job.wait()).toBe('COMPLETE')
  })

  test.each<[string, () => DefinedServices<unknown>, RegExp]>([
    [
      'too slow',
      () => defineServices({ db: service(() => new Promise<never>(() => undefined), { timeout: '10ms' }) }),
      /service db was not made within 10 ms/,
    ],
    [
      'a need below',
      () =>
        defineServices({
          tenant: service(({ db }: { db: Database }) => ({ name: 'x', db })),
          db: service(() => ({ rows: [] as string[] })),
        }),
      /service tenant needs service db, which is defined below it: move db above tenant/,
    ],
    [
      'a need of another scope',
      () =>
        defineServices({
          tenant: service(() => ({ name: 'x' }), { scope: 'job' }),
          db: service(({ tenant }: { tenant: { name: string } }) => tenant.name),
        }),
      /service db of the process needs service tenant, which is made for each job: give db the scope 'job'/,
    ],
    [
      'an unknown need',
      () => defineServices({ db: service(({ tenant }: { tenant: string }) => tenant) } as never),
      /service db needs service tenant, which is not defined/,
    ],
    [
      'an error',
      () =>
        defineServices({
          db: service(async () => {
            throw new Error('no database')
          }),
        }),
      /no database/,
    ],
  ])('for the process keeps the conductor from starting: %s', async (_, make, says) => {
    await using board = await openBoard('memory:')
    const given = startConductor({ ...places, board, services: make() as never })
    await expect(given).rejects.toThrow(says)
  })

  test('leaves none of those that were made before it', async () => {
    await using board = await openBoard('memory:')
    const ended: string[] = []
    const services = defineServices({
      first: service(() => 1, { dispose: () => ended.push('first') }),
      second: service(() => 2, { dispose: () => ended.push('second') }),
      third: service(() => {
        throw new Error('enough')
      }),
    })
    await expect(startConductor({ ...places, board, services: services as never })).rejects.toThrow('enough')
    expect(ended).toEqual(['second', 'first'])
  })

  test.each<[string, () => unknown, RegExp]>([
    ['no function', () => service('db' as never), /the first argument must be a function/],
    ['a scope', () => service(() => 1, { scope: 'child' as never }), /scope must be 'process' or 'job', got "child"/],
    ['an option', () => service(() => 1, { healthy: true } as never), /healthy/],
    [
      'a health check for each job',
      () => service(() => 1, { scope: 'job', health: () => 1 }),
      /health is for services/,
    ],
    ['a value', () => defineServices({ db: 1 } as never), /db must be what service\(…\) returns/],
    ['nothing', () => defineServices(undefined as never), /the argument must be an object/],
  ])('is refused where it is defined: %s', (_, make, says) => {
    expect(make).toThrow(says)
  })
})

describe('a service whose disposal hangs', () => {
  const hang = () => new Promise<never>(() => undefined)

  test('is left behind after its time limit: those before it are disposed of, and the conductor stops', async () => {
    await using board = await openBoard('memory:')
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
    const ended: string[] = []
    const services = defineServices({
      first: service(() => 1, { dispose: () => ended.push('first') }),
      second: service(() => 2, { dispose: hang, timeout: '10ms' }),
    })
    const conductor = await startConductor({ ...places, board, log, services: services as never })
    await conductor.stop()
    expect(ended).toEqual(['first'])
    expect(lines.join('')).toContain('service second was not disposed of within 10 ms, and is left behind')
  })

  test('does not keep the slot of its job', async () => {
    await using board = await openBoard('memory:')
    const rows: string[] = []
    const tenant = service(() => ({ name: 'x', db: { rows } }), { scope: 'job', dispose: hang, timeout: '10ms' })
    const services = defineServices({ db: service(() => ({ rows })), tenant })
    const conductor = await startConductor({ ...places, board, services, concurrency: 1 })
    onTestFinished(() => conductor.stop())
    for (const row of ['one', 'two']) expect(await (await board.post(flow, { row })).wait()).toBe('COMPLETE')
    expect(rows).toEqual(['x: one', 'x: two'])
  })
})

describe('an unhealthy service', () => {
  test('keeps the conductor from claiming until it is healthy, and /readyz names it', async () => {
    await using board = await openBoard('memory:')
    const rows: string[] = []
    let fault: string | undefined = 'connection refused'
    const db = service(() => ({ rows }), {
      health: () => {
        if (fault !== undefined) throw new Error(fault)
      },
    })
    const tenant = service(({ db }: { db: Database }) => ({ name: 'x', db }), { scope: 'job' })
    const services = defineServices({ db, tenant })
    const conductor = await startConductor({ ...places, board, services, health: { port: 0 } })
    onTestFinished(() => conductor.stop())
    const job = await board.post(flow, { row: 'r' })
    const ready = await fetch(`${conductor.healthUrl}/readyz`)
    expect(ready.status).toBe(503)
    expect(await ready.json()).toMatchObject({ healthy: false, services: { db: expect.stringContaining(fault) } })
    expect(conductor.running).toBe(0)
    fault = undefined
    expect(await job.wait()).toBe('COMPLETE')
    expect((await (await fetch(`${conductor.healthUrl}/readyz`)).json()) as object).toMatchObject({
      healthy: true,
      services: { db: 'healthy' },
    })
  })
})
