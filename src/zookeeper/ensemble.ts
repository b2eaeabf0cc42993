/** Who the servers are: what an ensemble says of itself, and changing it while it runs. */
import { InvalidArgument } from '../core/errors.ts'
import { assertList } from './protocol/arguments.ts'
import type { JuteWriter } from './protocol/jute.ts'
import { OPCODE } from './protocol/opcodes.ts'
import { readStat, type Stat } from './protocol/records.ts'
import { type ReadData, type Request, request } from './protocol/requests.ts'

/** Where an ensemble keeps its configuration: outside of every chroot. */
export const CONFIG_PATH = '/zookeeper/config'

/** Who the members of an ensemble are. */
export interface EnsembleConfig {
  /** `server.1=host:2888:3888:participant;2181`, one per server; none where the server runs alone. */
  readonly servers: readonly string[]
  /** Grows with every change; undefined where the server runs alone. */
  readonly version: bigint | undefined
  readonly stat: Stat
}

/** Either what comes and goes, or all members there are to be. Everything in the form of {@link EnsembleConfig}. */
export type Reconfiguration = (
  | { readonly joining?: readonly string[]; readonly leaving?: readonly (number | string)[]; readonly members?: never }
  | { readonly members: readonly string[]; readonly joining?: never; readonly leaving?: never }
) & {
  /** The version that this change is based on; BadVersion if there is another by then. Any by default. */
  readonly version?: bigint
}

const ANY_VERSION = -1n

/** @throws InvalidArgument for a change that changes nothing */
export function reconfig(change: Reconfiguration): Request<EnsembleConfig> {
  const { joining = [], leaving = [], members = [], version = ANY_VERSION } = change
  if (typeof version !== 'bigint')
    throw new InvalidArgument(`reconfig: the version is a bigint, as getConfig tells it, not ${String(version)}`)
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

/** None at all is null: an empty text would be a list with one member that has no name. */
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
