/** How znodes are created: the kinds there are, and which of the three operations asks for which. */
import { InvalidArgument } from '../../core/errors.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { ACL, type Acl, writeAcls } from './acl.ts'
import { checkData } from './data.ts'
import type { JuteWriter } from './jute.ts'
import { CREATE_FLAG, OPCODE } from './opcodes.ts'
import { readStat, type Stat } from './records.ts'
import { type Request, request } from './requests.ts'

/** Stays until it is deleted, or goes with the session. */
export interface OrdinaryMode {
  /** Deleted by the server when this session ends. */
  readonly ephemeral?: boolean
  /** The server appends ten digits, counted per parent, to the name. */
  readonly sequential?: boolean
  readonly container?: false
  readonly ttl?: never
}

/** A znode that goes with its last child. */
export interface ContainerMode {
  /** Deleted by the server some time (a minute) after its last child; never before it had one. */
  readonly container: true
  readonly ephemeral?: false
  readonly sequential?: false
  readonly ttl?: never
}

/** A znode that goes by itself when nobody writes it. */
export interface ExpiringMode {
  /**
   * Deleted by the server some time (a minute) after it has not been written for so long and has no children: at least
   * 1 ms, at most some 34 years. Servers must be started with `extendedTypesEnabled=true`, or it is Unimplemented.
   */
  readonly ttl: Duration
  readonly sequential?: boolean
  readonly ephemeral?: false
  readonly container?: false
}

/** What kind of znode is made, and who may do what with it. Without any: one that stays. */
export type CreateMode = (OrdinaryMode | ContainerMode | ExpiringMode) & {
  /** Who may do what; the client's `acl` by default, and that is everybody everything. */
  readonly acl?: readonly Acl[]
}

/** Without the compiler's help anything can be asked for. */
type UncheckedMode = { readonly [K in 'ephemeral' | 'sequential' | 'container']?: boolean | undefined } & {
  readonly ttl?: Duration | undefined
}

/** Servers keep a TTL in 40 bits. */
const MAX_TTL_MS = 2 ** 40 - 1

interface CreateKind {
  readonly opcode: number
  readonly flag: number
  readonly ttl?: bigint
}

/** @throws InvalidArgument for a combination that no server knows, and for a TTL out of range */
export function toCreateKind({ ephemeral, sequential, container, ttl }: UncheckedMode): CreateKind {
  if (container) {
    const other = ephemeral ? 'ephemeral' : sequential ? 'sequential' : ttl !== undefined ? 'ttl' : undefined
    if (other) throw new InvalidArgument(`a container cannot be ${other}: leave one of both options out`)
    return { opcode: OPCODE.createContainer, flag: CREATE_FLAG.container }
  }
  if (ttl !== undefined) {
    if (ephemeral) throw new InvalidArgument('an ephemeral znode cannot have a ttl: leave one of both options out')
    const ms = Math.round(toMilliseconds(ttl, 'ttl'))
    if (ms < 1 || ms > MAX_TTL_MS) throw new InvalidArgument(`ttl: ${ms} ms is not between 1 and ${MAX_TTL_MS}`)
    const flag = sequential ? CREATE_FLAG.ttlSequential : CREATE_FLAG.ttl
    return { opcode: OPCODE.createTtl, flag, ttl: BigInt(ms) }
  }
  if (sequential) {
    const flag = ephemeral ? CREATE_FLAG.ephemeralSequential : CREATE_FLAG.persistentSequential
    return { opcode: OPCODE.create2, flag }
  }
  return { opcode: OPCODE.create2, flag: ephemeral ? CREATE_FLAG.ephemeral : CREATE_FLAG.persistent }
}

export function writeCreate(
  writer: JuteWriter,
  znode: { readonly path: string; readonly data: Uint8Array | null; readonly acl?: readonly Acl[] },
  kind: CreateKind,
): void {
  writer.text(znode.path).bytes(checkData(znode.data))
  writeAcls(writer, znode.acl ?? ACL.open)
  writer.int(kind.flag)
  if (kind.ttl !== undefined) writer.long(kind.ttl)
}

/** What a create answers. */
export interface Created {
  /** With its digits, if it is sequential. */
  readonly path: string
  readonly stat: Stat
}

export function create(path: string, data: Uint8Array | null, mode: CreateMode): Request<Created> {
  const kind = toCreateKind(mode)
  return request({
    operation: 'create',
    opcode: kind.opcode,
    path,
    write: (writer) => writeCreate(writer, { path, data, ...(mode.acl ? { acl: mode.acl } : {}) }, kind),
    read: (body) => ({ path: body.text(), stat: readStat(body) }),
  })
}
