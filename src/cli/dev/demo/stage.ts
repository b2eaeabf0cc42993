/** Where a demo plays: on the board that is named, or on one that is thrown away; and in a folder that always is. */
import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { InvalidArgument } from '../../../core/errors.ts'
import { parseUri } from '../../../core/uri.ts'
import type { CliContext } from '../../context.ts'
import { boardUri, persistenceUri, type SharedOptions } from '../../input/shared-options.ts'
import { boardIsNamed } from '../../opening.ts'
import { DevServer } from '../dev-server.ts'
import { freePort } from '../free-port.ts'
import { findServer } from '../servers.ts'
import { temporaryFolder } from '../temporary-folder.ts'

export interface DemoEnvironment extends AsyncDisposable {
  /** Of the demo's own, deleted at the end. */
  readonly folder: string
  /** In it, where the tasks put their files. */
  readonly work: string
  /** In it: a config file that says nothing, so that the user's does not change what the conductors do. */
  readonly config: string
  /** With a session that is soon over when its owner dies. */
  readonly board: string
  readonly persistence: string
  /** Behind the names of flow and conductors, where others may use the board. */
  readonly tag: string
  /** Where a throw-away server comes from, for people; undefined of a board that outlives the demo. */
  readonly from: string | undefined
  /** What to look at afterwards: undefined where it is gone then. */
  readonly kept: { readonly board: string; readonly persistence: string } | undefined
}

/** @throws InvalidArgument for a URI that cannot be used here; saying what to install, where no server can be had */
export async function openDemoEnvironment(
  options: SharedOptions,
  context: CliContext,
  signal: AbortSignal,
): Promise<DemoEnvironment> {
  if (boardIsNamed(options, context)) return openNamedEnvironment(options, context)
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
      from: recipe.from,
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
    from: undefined,
    kept: logbooks === undefined ? undefined : { board: named, persistence: logbooks },
    [Symbol.asyncDispose]: () => removeFolder(folder),
  }
}

/** What keeps the wait for a dead owner short, by the kind of board. Servers of ZooKeeper allow no less, as they come. */
const SHORT_SESSION_PARAMETERS: readonly (readonly [scheme: RegExp, parameters: Readonly<Record<string, string>>])[] = [
  [/^zookeepers?$/, { sessionTimeout: '4s' }],
  [/^postgres(ql)?$/, { sessionTimeout: '4s', scanPeriod: '1s' }],
  [/^rediss?(\+|$)/, { ttl: '2s' }],
]

/** What the URI says itself stays. @throws InvalidArgument for what is no URI */
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
    `logbooks in ${printable} are gone with their process, and nobody could go on from them; leave --persistence out, or name some that are shared`,
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
