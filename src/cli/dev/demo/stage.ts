/**
 * The surroundings of a demo: the board that is named, or a throw-away one; and a folder that is always thrown away.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Job, JobBoard } from '../../../board/index.ts'
import { InvalidArgument } from '../../../core/errors.ts'
import { parseUri } from '../../../core/uri.ts'
import type { CliContext } from '../../context.ts'
import { boardUri, persistenceUri, type SharedOptions } from '../../input/shared-options.ts'
import { boardIsNamed } from '../../opening.ts'
import { DevServer, freePort } from '../dev-server.ts'
import { temporaryFolder } from '../guarded-program.ts'
import { findServer } from '../servers.ts'

export interface DemoEnvironment extends AsyncDisposable {
  /** The folder of the demo, deleted at the end. */
  readonly folder: string
  /** The folder in it for the files of the tasks. */
  readonly work: string
  /** An empty config file in it, so that the user's file does not change the conductors' settings. */
  readonly config: string
  /** The URI of the board, with a short session so that claims of a dead owner end soon. */
  readonly board: string
  readonly persistence: string
  /** The suffix of the names of flow and conductors, needed if others use the board. */
  readonly tag: string
  /** The throw-away place of the board, for people; undefined for a board that outlives the demo. */
  readonly place: string | undefined
  /** The URIs to look at afterwards; undefined if they are deleted at the end. */
  readonly kept: { readonly board: string; readonly persistence: string } | undefined
}

/** The place of a demo: a file by default. */
export interface DemoOptions extends SharedOptions {
  /** Whether the demo starts a ZooKeeper. */
  readonly zookeeper?: boolean
}

/**
 * Prepares board, logbooks and folder.
 *
 * @throws InvalidArgument for a URI that cannot be used here; or if no ZooKeeper can be started, naming what to install
 */
export async function openDemoEnvironment(
  options: DemoOptions,
  context: CliContext,
  signal: AbortSignal,
): Promise<DemoEnvironment> {
  if (options.zookeeper && options.board)
    throw new InvalidArgument('--zookeeper starts a ZooKeeper for the demo: give it without --board')
  if (options.zookeeper) return openZooKeeperEnvironment(context, signal)
  return boardIsNamed(options, context) ? openNamedEnvironment(options, context) : openFileEnvironment()
}

async function openFileEnvironment(): Promise<DemoEnvironment> {
  const folder = await createFolder()
  const file = pathToFileURL(join(folder.folder, 'jobs.db')).pathname
  return {
    ...folder,
    board: `sqlite:${file}?sessionTimeout=2s`,
    persistence: `sqlite:${file}`,
    tag: '',
    place: 'an SQLite file, without a server',
    kept: undefined,
    [Symbol.asyncDispose]: () => removeFolder(folder),
  }
}

async function openZooKeeperEnvironment(context: CliContext, signal: AbortSignal): Promise<DemoEnvironment> {
  const recipe = await findServer(undefined, context)
  const port = await freePort(0)
  const server = new DevServer({ recipe, port, env: context.env })
  try {
    await server.start(signal)
    const folder = await createFolder()
    return {
      ...folder,
      board: `zookeeper://127.0.0.1:${port}/demo?sessionTimeout=2s`,
      persistence: `zookeeper://127.0.0.1:${port}/logbooks`,
      tag: '',
      place: `a ZooKeeper ${recipe.from}`,
      kept: undefined,
      [Symbol.asyncDispose]: async () => {
        await removeFolder(folder)
        await server[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

async function openNamedEnvironment(options: SharedOptions, context: CliContext): Promise<DemoEnvironment> {
  const named = boardUri(options, context)
  const logbooks = persistenceUri(options, context)
  const board = withShortSession(named)
  if (logbooks !== undefined) assertShared(logbooks)
  const folder = await createFolder()
  return {
    ...folder,
    board,
    persistence: logbooks ?? `directory:${join(folder.folder, 'logbooks')}`,
    tag: `-${randomBytes(3).toString('hex')}`,
    place: undefined,
    kept: logbooks === undefined ? undefined : { board: named, persistence: logbooks },
    [Symbol.asyncDispose]: () => removeFolder(folder),
  }
}

/**
 * The parameters that shorten the wait for a dead owner, by the kind of board. Servers of ZooKeeper allow no less by
 * default.
 */
const SHORT_SESSION_PARAMETERS: readonly (readonly [scheme: RegExp, parameters: Readonly<Record<string, string>>])[] = [
  [/^zookeepers?$/, { sessionTimeout: '4s' }],
  [/^postgres(ql)?$/, { sessionTimeout: '4s', scanPeriod: '1s' }],
  [/^rediss?(\+|$)/, { ttl: '2s' }],
  [/^sqlite$/, { sessionTimeout: '2s' }],
]

/**
 * Adds the parameters of a short session to a URI; its own parameters win.
 *
 * @throws InvalidArgument for an invalid URI
 */
function withShortSession(uri: string): string {
  const { scheme, parameters } = parseUri(uri, 'board')
  const [, wanted = {}] = SHORT_SESSION_PARAMETERS.find(([kind]) => kind.test(scheme)) ?? []
  const missing = Object.entries(wanted).filter(([name]) => !parameters.has(name))
  if (missing.length === 0) return uri
  return `${uri}${uri.includes('?') ? '&' : '?'}${missing.map((pair) => pair.join('=')).join('&')}`
}

function assertShared(persistence: string): void {
  const { scheme, printable } = parseUri(persistence, 'persistence')
  if (scheme !== 'memory') return
  throw new InvalidArgument(
    `logbooks in ${printable} are lost with their process, and no other conductor could continue from them; remove --persistence, or name shared logbooks`,
  )
}

type DemoFolder = Pick<DemoEnvironment, 'folder' | 'work' | 'config'>

async function createFolder(): Promise<DemoFolder> {
  const folder = await temporaryFolder('jobboard-demo-')
  const work = join(folder, 'work')
  const config = join(folder, 'jobboard.yaml')
  await mkdir(work)
  await writeFile(config, '{}\n')
  return { folder, work, config }
}

function removeFolder({ folder }: DemoFolder): Promise<void> {
  return rm(folder, { recursive: true, force: true })
}

/** The session's timeout for a board that does not report one. */
const DEFAULT_SESSION_MS = 4_000

/**
 * Claims and consumes the jobs that are still on the board; the claims of a dead conductor end with its session.
 *
 * @throws Timeout if a claim is held for longer than that; what the board throws
 */
export async function removeJobs(board: JobBoard, jobs: readonly Job[]): Promise<void> {
  const uuids = new Set(jobs.map(({ uuid }) => uuid))
  const timeout = 2 * (board.sessionTimeout ?? DEFAULT_SESSION_MS)
  while (true) {
    const max = filterOnBoard(jobs).length
    if (max === 0) return
    const claims = await board.claimNext({ max, timeout, accept: ({ uuid }) => uuids.has(uuid) })
    await Promise.all(claims.map((claim) => claim.consume()))
  }
}

export function filterOnBoard(jobs: readonly Job[]): readonly Job[] {
  return jobs.filter(({ state }) => state === 'CLAIMED' || state === 'UNCLAIMED')
}
