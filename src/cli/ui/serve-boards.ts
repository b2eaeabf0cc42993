/** Serves the dashboard of boards that are open. */
import type { JobBoard } from '../../board/index.ts'
import type { Logger } from '../../core/log.ts'
import { parseUri } from '../../core/uri.ts'
import type { Persistence } from '../../persistence/index.ts'
import { dashboard, type WireFinding } from '../../ui/index.ts'
import { serveDashboard } from '../../ui/internal.ts'
import type { CliContext } from '../context.ts'
import { definedOnly, type SharedOptions } from '../input/shared-options.ts'
import { contextOf } from '../opening.ts'
import type { ChosenAccess } from './access.ts'

export interface BoardToServe {
  readonly name: string
  readonly uri: string
  /** Its credentials in the config file: `user:password`. */
  readonly auth?: string | undefined
  /** The URI of its own logbooks, if it does not use the common ones. */
  readonly logbooks?: string | undefined
  readonly board: JobBoard
  readonly persistence?: Persistence
}

export interface ServeOptions {
  readonly options: SharedOptions & {
    readonly host?: string
    readonly readOnly?: boolean
    readonly allowedHost?: readonly string[]
    readonly base?: string
  }
  readonly context: CliContext
  readonly access: ChosenAccess
  readonly log: Logger
  readonly redact: readonly string[]
  readonly port: number
}

export interface ServedBoards extends AsyncDisposable {
  /** The address to open, with the token of a link. */
  readonly url: string
}

/** The age from which on a claim is examined by the doctor. */
const STUCK_AFTER_MS = 3_600_000

/** @throws InvalidArgument for an address that cannot be used */
export async function serveBoards(boards: readonly BoardToServe[], serving: ServeOptions): Promise<ServedBoards> {
  const { options, access, log, redact, port } = serving
  const { host = '127.0.0.1', readOnly = false, allowedHost = [], base } = options
  // Who names an address to listen on means it as a name, too.
  const isName = host !== '0.0.0.0' && host !== '::'
  const opened = dashboard({
    boards: Object.fromEntries(
      boards.map(({ name, board, persistence }) => [name, { board, ...(persistence ? { persistence } : {}) }]),
    ),
    ...(access.authorize ? { authorize: access.authorize } : {}),
    allowedHosts: [...allowedHost, ...(isName ? [toHostName(host)] : [])],
    ...{ readOnly, redact, log },
    ...(base === undefined ? {} : { base }),
    examine: ({ name }) =>
      examineBoard(
        boards.find((board) => board.name === name),
        serving,
      ),
  })
  const server = await serveDashboard(opened, { host, port })
  const shown = isName ? toHostName(host) : (allowedHost[0] ?? '127.0.0.1')
  const token = access.linkToken === undefined ? '' : `?token=${access.linkToken}`
  const path = base === undefined ? '/' : `${base.replace(/\/$/, '')}/`
  return {
    url: `http://${shown}:${server.port}${path}${token}`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function toHostName(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}

async function examineBoard(
  examinedBoard: BoardToServe | undefined,
  { options, context }: ServeOptions,
): Promise<WireFinding[]> {
  const { uri, auth, logbooks } = examinedBoard ?? {}
  const { examine } = await import('../doctor/examine.ts')
  const findings: WireFinding[] = []
  const examined = { ...options, ...definedOnly({ board: uri, persistence: logbooks }) }
  for await (const { severity, about, text, advice } of examine({
    options: examined,
    context: contextOf({ auth, persistence: logbooks }, context),
    stuckAfter: STUCK_AFTER_MS,
  })) {
    const level = severity === 'error' ? 'fault' : severity
    findings.push({ level, subject: about, text, ...(advice === undefined ? {} : { advice }) })
  }
  return findings
}

/** Returns a short name for each board, from its URI: the end of a path, the board of a database, a prefix. */
export function toBoardNames(uris: readonly string[]): string[] {
  const names: string[] = []
  for (const uri of uris) {
    const { scheme, path, parameters } = parseUri(uri, 'board')
    const place = parameters.get('board') ?? parameters.get('prefix') ?? (/^zookeepers?$/.test(scheme) ? path : scheme)
    const end = place.split('/').findLast((part) => part !== '') ?? scheme
    const clean =
      end
        .replace(/[^\w.~-]/g, '-')
        .slice(0, 60)
        .replace(/^\.+/, '') || scheme
    let name = clean
    for (let number = 2; names.includes(name); number += 1) name = `${clean}-${number}`
    names.push(name)
  }
  return names
}
