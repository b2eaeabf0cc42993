/** Opens SQLite boards by URI: `sqlite:./jobs.db?board=NAME&synchronous=normal&sessionTimeout=10s&window=10000&create=false` */
import { InvalidArgument } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { type ResourceUri, readDurationParameter } from '../../../core/uri.ts'
import { parseSqliteLocation } from '../../../sqlite/index.ts'
import type { Backend } from '../../contract/index.ts'
import { windowSizeOf } from '../window-size.ts'
import { SqliteBackend } from './backend.ts'

/** The default TTL of a session, in milliseconds: it matters only for processes that are stopped or hang. */
const DEFAULT_TTL_MS = 10_000

/** Creates the backend for a URI. @throws InvalidArgument for an invalid path or parameter */
export function sqliteBackend(
  uri: ResourceUri,
  { who, create, log }: { readonly who: string; readonly create?: boolean; readonly log?: Logger },
): Backend {
  const location = parseSqliteLocation(uri, {
    parameters: ['board', 'sessionTimeout', 'window', 'windowBytes'],
    create,
  })
  const board = uri.parameters.get('board') ?? 'default'
  if (board === '') throw new InvalidArgument(`${uri.printable}: board must not be empty; omit it, or name a board`)
  const sessionTimeout = readDurationParameter(uri, 'sessionTimeout') ?? DEFAULT_TTL_MS
  if (sessionTimeout <= 0) throw new InvalidArgument(`${uri.printable}: sessionTimeout must be longer than 0`)
  const size = windowSizeOf(uri)
  return new SqliteBackend({
    uri: uri.printable,
    location,
    board,
    who,
    sessionTimeout,
    ...size,
    ...(log ? { log } : {}),
  })
}
