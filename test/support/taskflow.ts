/** TaskFlow itself, from Debian's packages: a Python process with a board of its own, told by a test what to do. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ROOT } from './build.ts'
import { startGuarded } from './guarded-process.ts'
import { exists, type Provision, provide } from './install.ts'

/** Debian's packages are for Debian's Python, whichever one PATH finds first. */
export const PYTHON = '/usr/bin/python3'
const PACKAGES = '/usr/lib/python3/dist-packages'
const SERVICE = join(ROOT, 'test/support/taskflow/service.py')

const TASKFLOW: Provision = {
  name: 'taskflow',
  packages: ['python3-taskflow', 'python3-kazoo'],
  installed: async () => {
    const needed = [PYTHON, `${PACKAGES}/taskflow`, `${PACKAGES}/kazoo`]
    return (await Promise.all(needed.map(exists))).every((there) => there)
  },
}

/** The same with its logbooks in SQL databases: Debian's package of TaskFlow only suggests what that needs. */
const TASKFLOW_WITH_SQL: Provision = {
  name: TASKFLOW.name,
  packages: [...TASKFLOW.packages, 'python3-sqlalchemy', 'python3-sqlalchemy-utils', 'python3-alembic'],
  installed: async () => {
    const needed = ['sqlalchemy', 'sqlalchemy_utils', 'alembic'].map((name) => exists(`${PACKAGES}/${name}`))
    return (await Promise.all([TASKFLOW.installed(), ...needed])).every((there) => there)
  },
}

/** JOBBOARD_SKIP=taskflow: the last line of the run says that it was left out. */
export const taskflowLeftOut: boolean = (process.env['JOBBOARD_SKIP'] ?? '')
  .split(',')
  .some((name) => name.trim() === TASKFLOW.name)

/**
 * Installs it where it is missing and may be installed.
 *
 * @param options.sql whether its logbooks are to be in a SQL database
 * @returns whether it is there; it is not where JOBBOARD_SKIP names it
 * @throws Error saying what to do otherwise
 */
export async function provideTaskFlow(options: { readonly sql?: boolean } = {}): Promise<boolean> {
  const provision = options.sql ? TASKFLOW_WITH_SQL : TASKFLOW
  return (await provide(provision, { here: true })) !== 'skip'
}

/** As TaskFlow tells of a job. */
export interface TheirJob {
  readonly uuid: string
  readonly name: string
  readonly state: string
  readonly priority: string
  readonly details: Readonly<Record<string, unknown>>
  readonly book: string | null
  readonly owner: string | null
}

/** What TaskFlow raised. */
export class TheirError extends Error {
  /** The exception's class: `UnclaimableJob`, `NotFound`, `JobFailure`. */
  readonly kind: string

  constructor(kind: string, message: string) {
    super(`${kind}: ${message}`)
    this.kind = kind
  }
}

export interface TaskFlowService extends AsyncDisposable {
  readonly who: string
  /** Undefined while it has none. */
  session(): Promise<bigint | undefined>
  post(name: string, options?: { details?: object; priority?: string }): Promise<string>
  /** What it sees when it looks anew. */
  jobs(): Promise<TheirJob[]>
  /** As Python prints them. */
  details(uuid: string): Promise<string>
  state(uuid: string): Promise<string>
  claim(uuid: string): Promise<void>
  consume(uuid: string): Promise<void>
  abandon(uuid: string): Promise<void>
  trash(uuid: string): Promise<void>
  /** Claims what it finds, and does it, until `rest`; appends to the file what it owns. */
  work(log: string): Promise<void>
  rest(): Promise<void>
  /** A job with a logbook, whose flow says the text. */
  postFlow(text: string): Promise<string>
  /** Starts a conductor of TaskFlow's. */
  conduct(): Promise<void>
  /** What its conductor's flows said. */
  executed(): Promise<string[]>
}

/** A service that is connected to the board at `path`, which it makes where it is missing. */
export async function startTaskFlow(at: { hosts: string; path: string; who: string }): Promise<TaskFlowService> {
  await provideTaskFlow()
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address()) as { port: number }
  const child = await startGuarded([PYTHON, SERVICE, String(port), at.hosts, at.path, at.who])
  const [socket] = await Promise.race([
    once(server, 'connection'),
    child.ended.then((code) => {
      throw new Error(`the TaskFlow service ended (${code}) before it was connected`)
    }),
  ]).finally(() => server.close())
  socket.on('error', () => undefined)
  const answers = createInterface(socket)[Symbol.asyncIterator]()

  let last: Promise<unknown> = Promise.resolve()
  /** One command at a time, in the order of the calls. */
  const tell = <T>(name: string, args: object = {}): Promise<T> => {
    const told = last.then(async () => {
      socket.write(`${JSON.stringify({ name, arguments: args })}\n`)
      const { value: line, done } = await answers.next()
      if (done) throw new Error(`the TaskFlow service is gone; ${name} was not answered`)
      const answer = JSON.parse(line)
      if ('error' in answer) throw new TheirError(answer.error, answer.message)
      return answer.value as T
    })
    last = told.catch(() => undefined)
    return told
  }
  return {
    who: at.who,
    session: async () => {
      const id = await tell<string>('session')
      return id === '' ? undefined : BigInt(id)
    },
    post: (name, options = {}) => tell('post', { name, ...options }),
    jobs: () => tell('jobs'),
    details: (uuid) => tell('details', { uuid }),
    state: (uuid) => tell('state', { uuid }),
    claim: (uuid) => tell('claim', { uuid }),
    consume: (uuid) => tell('consume', { uuid }),
    abandon: (uuid) => tell('abandon', { uuid }),
    trash: (uuid) => tell('trash', { uuid }),
    work: (log) => tell('work', { log }),
    rest: () => tell('rest'),
    postFlow: (text) => tell('post_flow', { text }),
    conduct: () => tell('conduct'),
    executed: () => tell('executed'),
    [Symbol.asyncDispose]: async () => {
      child.signal('SIGKILL')
      await child.ended
      socket.destroy()
    },
  }
}
