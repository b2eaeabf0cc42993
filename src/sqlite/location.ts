/** The file that a URI names: `sqlite:./jobs.db?synchronous=normal`. */
import { existsSync, mkdirSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { InvalidArgument, messageOf, NotFound, UnsupportedCapability } from '../core/errors.ts'
import { assertParameters, type ResourceUri } from '../core/uri.ts'
import type { Synchronous } from './connection.ts'

export interface SqliteLocation {
  /** The absolute path of the file. */
  readonly path: string
  readonly synchronous: Synchronous
  /** Whether a missing file or board is created. */
  readonly create: boolean
}

/** Parameters that boards and logbooks have in common. */
const PARAMETERS = ['synchronous', 'create']

/** Parses a URI. @throws InvalidArgument for a URI that names no file of this machine, or has an unknown or invalid parameter */
export function parseSqliteLocation(
  uri: ResourceUri,
  {
    parameters = [],
    create = true,
  }: { readonly parameters?: readonly string[]; readonly create?: boolean | undefined } = {},
): SqliteLocation {
  const { authority, path, printable } = uri
  assertParameters(uri, [...PARAMETERS, ...parameters])
  if (authority !== '' || path === '' || path.endsWith('/') || path.includes('\0') || path === ':memory:')
    throw new InvalidArgument(
      `${printable}: the URI must name a file of this machine, as in sqlite:./jobs.db; for jobs in memory write memory:`,
    )
  return {
    path: resolve(path),
    synchronous: readChoice(uri, 'synchronous', { full: 'FULL', normal: 'NORMAL' } as const) ?? 'FULL',
    create: create && (readChoice(uri, 'create', { true: true, false: false }) ?? true),
  }
}

function readChoice<T>(
  { parameters, printable }: ResourceUri,
  name: string,
  known: Readonly<Record<string, T>>,
): T | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  if (Object.hasOwn(known, text)) return known[text]
  throw new InvalidArgument(`${printable}: ${name} must be ${Object.keys(known).join(' or ')}, got '${text}'`)
}

/**
 * Network file systems, by the numbers that Linux gives them; other systems are not checked. SQLite's log needs memory that all processes share,
 * which a network file system does not give, and its locks may fail.
 */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x01021997, '9p'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
])

/**
 * Creates the folder of the file where it is missing.
 *
 * @throws NotFound with `create: false` if there is no such file; InvalidArgument if the folder cannot be made
 */
export function prepareFolder({ path, create }: SqliteLocation): void {
  const folder = dirname(path)
  if (!create && !existsSync(path))
    throw new NotFound(`there is no file ${path}; the first process that opens it creates it`)
  try {
    mkdirSync(folder, { recursive: true })
  } catch (cause) {
    throw new InvalidArgument(`${folder} cannot be made: ${messageOf(cause)}; name another folder`, { cause })
  }
}

/** @throws UnsupportedCapability for a file on a network file system */
export function assertLocal(path: string): void {
  const network = NETWORK_FILE_SYSTEMS.get(statfsSync(dirname(path)).type)
  if (network === undefined) return
  throw new UnsupportedCapability(
    `${path} is on a network file system (${network}), whose locks SQLite cannot rely on; use a local disk, or a board on a server`,
    { capability: 'sqlite' },
  )
}
