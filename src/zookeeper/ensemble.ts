/** The configuration of an ensemble: reading it, and changing it at run time. */
import { InvalidArgument } from '../core/errors.ts'
import { assertList } from './protocol/arguments.ts'
import type { JuteWriter } from './protocol/jute.ts'
import { OPCODE } from './protocol/opcodes.ts'
import { readStat, type Stat } from './protocol/records.ts'
import { type ReadData, type Request, request } from './protocol/requests.ts'

/** Path of the ensemble's configuration, outside of every chroot. */
export const CONFIG_PATH = '/zookeeper/config'

/** Configuration of an ensemble. */
export interface EnsembleConfig {
  /** Servers as `server.1=host:2888:3888:participant;2181`; empty for a standalone server. */
  readonly servers: readonly string[]
  /** Version, which grows with every change; undefined for a standalone server. */
  readonly version: bigint | undefined
  readonly stat: Stat
}

/**
 * A change of the members: either who joins and leaves, or the complete new list, in the form of {@link
 * EnsembleConfig}.
 */
export type Reconfiguration = (
  | { readonly joining?: readonly string[]; readonly leaving?: readonly (number | string)[]; readonly members?: never }
  | { readonly members: readonly string[]; readonly joining?: never; readonly leaving?: never }
) & {
  /** Version that this change is based on; BadVersion if the servers have another one. Any by default. */
  readonly version?: bigint
}

const ANY_VERSION = -1n

/**
 * Returns the request that changes the members.
 *
 * @throws InvalidArgument for a change that changes nothing
 */
export function reconfig(change: Reconfiguration): Request<EnsembleConfig> {
  const { joining = [], leaving = [], members = [], version = ANY_VERSION } = change
  if (typeof version !== 'bigint')
    throw new InvalidArgument(`reconfig: version must be a bigint, as getConfig returns it, got ${String(version)}`)
  for (const list of [joining, leaving, members]) assertList(list, 'reconfig')
  if (members.length > 0 && joining.length + leaving.length > 0) {
    throw new InvalidArgument('reconfig takes either members, or who is joining and leaving')
  }
  if (members.length + joining.length + leaving.length === 0) {
    throw new InvalidArgument('reconfig needs members, or who is joining or leaving')
  }
  return request({
    operation: 'reconfig',
    opcode: OPCODE.reconfig,
    write: (writer) => {
      for (const list of [joining, leaving, members]) writeList(writer, list)
      writer.long(version)
    },
    read: (body) => parseConfig({ data: body.bytes(), stat: readStat(body) }),
  })
}

/** Writes a list. An empty list is written as null: an empty text would be a list with one member without a name. */
function writeList(writer: JuteWriter, items: readonly (number | string)[]): void {
  if (items.length === 0) writer.bytes(null)
  else writer.text(items.join(','))
}

const VERSION_PATTERN = /^version=([0-9a-f]+)$/

export function parseConfig({ data, stat }: ReadData): EnsembleConfig {
  const lines = data === null ? [] : Buffer.from(data).toString().split('\n')
  const version = lines.map((line) => VERSION_PATTERN.exec(line)?.[1]).find((found) => found !== undefined)
  return {
    servers: lines.filter((line) => line.startsWith('server.')),
    version: version === undefined ? undefined : BigInt(`0x${version}`),
    stat,
  }
}
