/**
 * One process of a product with durable flows that `bench -- durable` compares with: `durable-child.ts ROLE WHERE NAME COUNT WIDTH`.
 * The flow is everywhere the same: two steps, the result of the first recorded before the second starts.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { requireFrom } from '../support/npm-folder.ts'
import { sideBySide, whenTold } from './part-child.ts'
import { DURABLE_PEERS } from './peers-folder.ts'

/** As `FLOWS.two` of our own conductor has them. */
const one = async () => 'what one has made'
const two = async (text: string) => text.length

const QUEUE = 'flows'
/** The default is a second, in which no more than the worker's concurrency can be started. */
const DBOS_POLL_MS = 10
/** The default is 10; more connections than this bring nothing on two processors. */
const DBOS_POOL = 20

const [role = '', where = '', name = '', ...numbers] = process.argv.slice(2)
const [count = 0, width = 1] = numbers.map(Number)

const ROLES: Readonly<Record<string, () => Promise<void>>> = {
  /** Runs what comes to the queue of a DBOS application until so many workflows are done, and recorded as done. */
  'dbos-work': async () => {
    const { DBOS } = dbos()
    let left = count
    await launch(() => {
      left -= 1
    })
    await DBOS.registerQueue(QUEUE, { workerConcurrency: width, minPollingIntervalMs: DBOS_POLL_MS })
    await whenTold(async () => {
      while (left > 0 || (await DBOS.listQueuedWorkflows({ queueName: QUEUE })).length > 0) await pause(DBOS_POLL_MS)
    })
    await DBOS.shutdown()
  },

  /** Puts so many workflows on that queue. */
  'dbos-enqueue': async () => {
    const client = await dbos().DBOSClient.create({ ...database(), systemDatabasePoolSize: DBOS_POOL })
    const options = { workflowName: 'two', queueName: QUEUE }
    await whenTold(() => sideBySide(count, width, () => client.enqueue(options, {})))
    await client.destroy()
  },

  /** Starts so many workflows of a DBOS application in its own process, without a queue, and waits for each. */
  'dbos-start': async () => {
    const { DBOS } = dbos()
    const flow = await launch(() => undefined)
    await whenTold(() =>
      sideBySide(count, width, async () => {
        const handle = await DBOS.startWorkflow(flow)({})
        await handle.getResult()
      }),
    )
    await DBOS.shutdown()
  },

  /** Serves a Restate service on a port. */
  'restate-serve': async () => {
    process.env['RESTATE_LOGGING'] = 'ERROR'
    const restate = requireFrom(DURABLE_PEERS, '@restatedev/restate-sdk') as Restate
    const flow = async (ctx: RestateContext) => {
      const text = await ctx.run('one', one)
      return await ctx.run('two', () => two(text))
    }
    await restate.serve({ services: [restate.service({ name, handlers: { two: flow } })], port: Number(where) })
    await whenTold((end) => end())
    process.exit()
  },

  /** Calls that service so many times through the server's ingress, and waits for each. */
  'restate-call': async () => {
    const clients = requireFrom(DURABLE_PEERS, '@restatedev/restate-sdk-clients') as RestateClients
    const service = clients.connect({ url: where }).serviceClient({ name })
    await whenTold(() => sideBySide(count, width, () => service.two({})))
    process.exit()
  },
}

/** The name of the application is that of its schema, too: each run has its own. */
function database(): { readonly systemDatabaseUrl: string; readonly systemDatabaseSchemaName: string } {
  return { systemDatabaseUrl: where, systemDatabaseSchemaName: name }
}

async function launch(done: () => void): Promise<Workflow> {
  const { DBOS } = dbos()
  const run = async () => {
    const text = await DBOS.runStep(one, { name: 'one' })
    const length = await DBOS.runStep(() => two(text), { name: 'two' })
    done()
    return length
  }
  const flow = DBOS.registerWorkflow(run, { name: 'two' })
  DBOS.setConfig({ name: 'bench', ...database(), systemDatabasePoolSize: DBOS_POOL, logLevel: 'error' })
  await DBOS.launch()
  return flow
}

function dbos(): Dbos {
  // Its driver of Postgres warns of how DBOS uses it.
  process.noDeprecation = true
  return requireFrom(DURABLE_PEERS, '@dbos-inc/dbos-sdk') as Dbos
}

type Workflow = (input: object) => Promise<number>

interface Dbos {
  readonly DBOS: {
    setConfig(config: object): void
    launch(): Promise<void>
    shutdown(): Promise<void>
    registerWorkflow(run: Workflow, options: object): Workflow
    registerQueue(name: string, options: object): Promise<unknown>
    runStep<Result>(step: () => Promise<Result>, options: object): Promise<Result>
    startWorkflow(flow: Workflow): (input: object) => Promise<{ getResult(): Promise<number> }>
    listQueuedWorkflows(options: object): Promise<readonly unknown[]>
  }
  readonly DBOSClient: {
    create(
      options: object,
    ): Promise<{ enqueue(options: object, input: object): Promise<unknown>; destroy(): Promise<void> }>
  }
}

interface RestateContext {
  run<Result>(name: string, step: () => Promise<Result>): Promise<Result>
}

interface Restate {
  service(definition: object): unknown
  serve(options: object): Promise<number>
}

interface RestateClients {
  connect(options: object): { serviceClient(service: object): { two(input: object): Promise<number> } }
}

await ROLES[role]?.()
