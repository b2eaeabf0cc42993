/** Opens Postgres boards by URI: `postgres://user:password@host:5432/database?board=NAME&schema=jobboard&sessionTimeout=30s&scanPeriod=10s&window=10000&…` */
import { InvalidArgument } from '../../../core/errors.ts'
import { type ResourceUri, readDurationParameter } from '../../../core/uri.ts'
import { parsePostgresLocation } from '../../../postgres/index.ts'
import type { Backend } from '../../contract/index.ts'
import { windowSizeOf } from '../window-size.ts'
import { PostgresBackend } from './backend.ts'
import type { PostgresBackendOptions } from './store/board.ts'

type PostgresBoardOptions = Pick<PostgresBackendOptions, 'who' | 'create' | 'log'>

/** The largest scan period: after a longer time without a poll, the board must be listed again. */
const MAX_SCAN_PERIOD_MS = 30_000

/** Creates the backend for a URI. @throws InvalidArgument for an invalid address or parameter */
export function postgresBackend(uri: ResourceUri, { who, create, log }: PostgresBoardOptions): Backend {
  const location = parsePostgresLocation(uri, [
    'board',
    'sessionTimeout',
    'scanPeriod',
    'window',
    'windowBytes',
    'advisoryLocks',
  ])
  const board = uri.parameters.get('board') ?? 'default'
  if (board === '') throw new InvalidArgument(`${uri.printable}: board must not be empty; omit it, or name a board`)
  const sessionTimeout = parseDurationParameter(uri, 'sessionTimeout', 30_000)
  const scanPeriod = parseDurationParameter(uri, 'scanPeriod', 10_000)
  if (scanPeriod > MAX_SCAN_PERIOD_MS)
    throw new InvalidArgument(`${uri.printable}: scanPeriod must be at most ${MAX_SCAN_PERIOD_MS / 1_000}s`)
  const advisoryLocks = uri.parameters.get('advisoryLocks') ?? 'on'
  if (advisoryLocks !== 'on' && advisoryLocks !== 'off')
    throw new InvalidArgument(`${uri.printable}: advisoryLocks must be on or off, got ${advisoryLocks}`)
  return new PostgresBackend({
    ...{ uri: uri.printable, location, board, who, sessionTimeout, scanPeriod, ...windowSizeOf(uri) },
    advisoryLocks: advisoryLocks === 'on',
    ...(create === undefined ? {} : { create }),
    ...(log ? { log } : {}),
  })
}

function parseDurationParameter(uri: ResourceUri, name: string, usual: number): number {
  const ms = readDurationParameter(uri, name) ?? usual
  if (ms > 0) return ms
  throw new InvalidArgument(`${uri.printable}: ${name} must be longer than 0`)
}
