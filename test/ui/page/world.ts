/** Boards with something of everything, and a dashboard that serves them. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type AnyFlow,
  type Conductor,
  graph,
  input,
  type JobBoard,
  linear,
  openBoard,
  openPersistence,
  type Persistence,
  type PostOptions,
  schedule,
  startConductor,
  task,
  times,
  unordered,
} from '../../../src/index.ts'
import { type Dashboard, dashboard, type Level } from '../../../src/ui/index.ts'

/** A name that would run a script in a page that takes it for markup, and turns around what follows. */
export const HOSTILE = '<img src=x onerror="document.title=`owned`"> \u202egnp.exe\u001b[31m'
/** The longest name that a board takes; messages can be longer. */
export const LONG = 'x'.repeat(1_000)
const HEBREW = 'שלום עולם'
const LONG_MESSAGE = 'y'.repeat(10_000)

/** Who asks, and what they may do; changed by tests. */
export interface Rights {
  level: Level
  values: boolean
}

export class World implements AsyncDisposable {
  readonly rights: Rights = { level: 'admin', values: true }
  /** The uuids of the jobs that pages are looked at for. */
  readonly jobs = new Map<string, string>()
  /** The streams of changes that are open. */
  streams = 0
  readonly board: JobBoard
  readonly other: JobBoard
  readonly persistence: Persistence
  /** Aborted at the end: the task of the running job waits for it. */
  readonly #ending = new AbortController()
  readonly #conductors: Conductor[] = []
  #dashboard: Dashboard | undefined
  #server: Server | undefined
  #port = 0

  private constructor(board: JobBoard, other: JobBoard, persistence: Persistence) {
    this.board = board
    this.other = other
    this.persistence = persistence
  }

  static async open(): Promise<World> {
    const board = await openBoard('memory:', { keepHistory: 100 })
    const world = new World(board, await openBoard('memory:'), await openPersistence('memory:'))
    await world.#fill()
    await world.serve()
    return world
  }

  /** The address of the dashboard, with a slash at its end. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}/`
  }

  uuid(name: string): string {
    const uuid = this.jobs.get(name)
    if (uuid === undefined) throw new Error(`there is no job ${name}`)
    return uuid
  }

  /** Serves the dashboard, on the port of the last time. */
  async serve({ readOnly = false }: { readonly readOnly?: boolean } = {}): Promise<void> {
    const { board, other, persistence, rights } = this
    this.#dashboard = dashboard({
      boards: { main: board, other },
      persistence,
      readOnly,
      authorize: () => ({ who: 'ada', ...rights }),
      examine: async () => [
        { level: 'ok', subject: 'session', text: 'the session is alive' },
        { level: 'fault', subject: 'flows', text: 'no conductor knows the flow unknown', advice: 'start one' },
      ],
    })
    const { node } = this.#dashboard
    this.#server = createServer((request, response) => {
      if (request.url?.includes('/events')) {
        this.streams += 1
        response.once('close', () => {
          this.streams -= 1
        })
      }
      node(request, response)
    })
    await new Promise<void>((resolve) => this.#server?.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Ends the server as a crash does: connections break. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server?.close(resolve))
    this.#server?.closeAllConnections()
    await this.#dashboard?.close()
    await closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    this.#ending.abort()
    for (const conductor of this.#conductors) await conductor.stop()
    await this.persistence.close()
    await this.board.close()
    await this.other.close()
  }

  async #fill(): Promise<void> {
    const { board, persistence } = this
    const hold = task('resize images', {
      execute: async (_, ctx) => {
        ctx.progress(0.6, 'image 12 of 20')
        await once(AbortSignal.any([this.#ending.signal, ctx.signal]), 'abort')
      },
    })
    const done = (name: string) => task(name, { execute: () => name.length })
    const broken = task('upload', {
      execute: () => {
        throw new Error(`the bucket refused 17 files\n${HOSTILE} ${LONG_MESSAGE}`)
      },
    })
    const images = unordered('images', input<object>(), hold, done('index'))
    const flows = {
      importing: linear('import', input<object>(), done('fetch'), done('unpack'), images),
      report: linear({ name: 'report', retry: times(2, { name: 'tries' }) }, input<object>(), done('collect'), broken),
      quick: graph('quick', input<object>(), done('only')),
    }
    this.#conductors.push(await startConductor({ board, persistence, flows: Object.values(flows), concurrency: 2 }))
    await board.limits.set('tenant/*', { concurrency: 1, fair: true })
    await board.limits.set('api', { rate: { limit: 100, per: '1m', burst: 10 } })
    await board.limits.stop('api', { reason: 'upstream is down' })
    await board.flowSettings.set('archive*', { enabled: false }, { reason: `the disk is full ${HOSTILE}` })
    await board.flowSettings.set('quick', { deadline: '1h', maxAttempts: 4 })
    await this.#post(flows)
    await board.schedules.put(schedule('nightly', { cron: '30 2 * * 1-5', zone: 'Europe/Berlin' }, flows.quick, {}))
    await board.schedules.put(schedule('poll', { every: '5m' }, flows.quick, {}))
    await board.schedules.pause('poll', { reason: 'upstream is down' })
  }

  async #post({
    importing,
    report,
    quick,
  }: Readonly<Record<'importing' | 'report' | 'quick', AnyFlow>>): Promise<void> {
    const { board, jobs } = this
    const post = async (name: string, flow: AnyFlow | string, store: object, options: PostOptions = {}) => {
      const job = await board.post(flow, store, { name, ...options })
      jobs.set(name, job.uuid)
      return job
    }
    const batch = await board.batch({ name: 'migration' })
    jobs.set('batch', batch.uuid)
    await batch.post('unknown', {})
    const ended = await post('ended', quick, { order: 17 })
    const failed = await post('failed', report, { order: { id: 17, text: HOSTILE } }, { maxAttempts: 1 })
    await Promise.all([ended.wait(), failed.wait()])
    const running = await post('running', importing, {}, { resources: { exclusive: ['disk-3'] } })
    await post('waits for disk', importing, {}, { resources: { exclusive: ['disk-3'] } })
    await post('waits for a job', importing, {}, { after: [running.uuid] })
    await post('waits for its time', importing, {}, { delay: '1h' })
    await post('waits for the api', quick, {}, { limits: ['api', 'tenant/acme'] })
    await post('waits for its flow', 'archive-2', {})
    await post('waits for a flow', 'unknown', { secret: 1 }, { key: 'order-17', priority: 'HIGH' })
    await post(HOSTILE, 'unknown', {})
    await post(LONG, 'unknown', {})
    await post(HEBREW, 'unknown', {})
  }
}
