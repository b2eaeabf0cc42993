/**
 * One process of `bench -- upgrade`: `upgrade-child.ts ROLE LIBRARY URI`. LIBRARY is the folder of a built release; its board is opened when the process is
 * told to begin, and the process works until it is told to end.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import type * as Jobboard from '../../src/index.ts'
import { now, whenTold } from './part-child.ts'

/** The time between two posts of one process, in milliseconds. */
const POST_PERIOD_MS = 20

/** What a process has done: the names of jobs, and when each was done or posted. */
export interface Worked {
  readonly names: readonly string[]
  readonly at: readonly number[]
  /** How long each took, in milliseconds: of a post, until it was answered. */
  readonly took: readonly number[]
}

type Role = (library: typeof Jobboard, uri: string, end: () => Promise<unknown>) => Promise<Worked>

/** Runs jobs, in eight slots. */
const conductor: Role = async (library, uri, end) => {
  const work = { names: [] as string[], at: [] as number[], took: [] as number[] }
  const step = library.task('step', { execute: (_args, ctx) => ctx.job?.name })
  await using board = await library.openBoard(uri, { who: `conductor ${process.pid}` })
  await using running = await library.startConductor({
    ...{ board, persistence: 'memory:', concurrency: 8 },
    flows: [library.linear('flow', library.input(), step)],
    hooks: {
      settled: ({ job, settled }) => {
        // A conductor that ends gives jobs back: another one does them.
        if (settled !== 'consumed') return
        work.names.push(job.name)
        work.at.push(now())
      },
    },
  })
  running.on('error', (error) => console.error(error))
  await end()
  return work
}

/** Posts at a steady rate. */
const poster: Role = async (library, uri, end) => {
  const work = { names: [] as string[], at: [] as number[], took: [] as number[] }
  await using board = await library.openBoard(uri, { who: `poster ${process.pid}` })
  let goesOn = true
  const ending = end().then(() => {
    goesOn = false
  })
  const posts: Promise<void>[] = []
  for (let n = 0; goesOn; n += 1) {
    const name = `${process.pid} ${n}`
    const begin = now()
    const post = async () => {
      await board.post('flow', {}, { name })
      work.names.push(name)
      work.at.push(now())
      work.took.push(now() - begin)
    }
    posts.push(post())
    await new Promise((resolve) => setTimeout(resolve, POST_PERIOD_MS))
  }
  await Promise.all([...posts, ending])
  return work
}

/** Posts a job in a transaction, which stays open until the process is told to end it. Does it again when it is told to go on. */
const outbox: Role = async (library, uri, end) => {
  const work = { names: [] as string[], at: [] as number[], took: [] as number[] }
  await using board = await library.openBoard(uri, { who: `outbox ${process.pid}` })
  for (const name of ['outbox1', 'outbox2']) {
    const client = new pg.Client({ connectionString: uri.replace(/\?.*/, ''), application_name: name })
    await client.connect()
    await client.query('BEGIN')
    await board.post('flow', {}, { name, client })
    await end()
    // A post of a transaction that has the locks of tables already waits for nothing that a migration does.
    const begin = now()
    await board.post('flow', {}, { name: `${name} more`, client })
    work.took.push(now() - begin)
    const goOn = end()
    await client.query('COMMIT')
    await client.end()
    work.names.push(name, `${name} more`)
    await goOn
  }
  return work
}

const ROLES: Readonly<Record<string, Role>> = { conductor, poster, outbox }

async function main(): Promise<void> {
  const [role = '', folder = '', uri = ''] = process.argv.slice(2)
  const begin = ROLES[role]
  if (!begin) throw new Error(`${role}: the role must be conductor, poster or outbox`)
  const library: typeof Jobboard = await import(pathToFileURL(join(folder, 'index.js')).href)
  await whenTold((end) => begin(library, uri, end))
}

if (process.argv[1] === import.meta.filename) await main()
