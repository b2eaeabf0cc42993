/** Creation of znodes: the kinds of znodes, and the operation and flags that each kind needs. */
import { InvalidArgument } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { ACL, type Acl, writeAcls } from './acl.ts'
import { checkData } from './arguments.ts'
import type { JuteWriter } from './jute.ts'
import { CREATE_FLAG, OPCODE } from './opcodes.ts'
import { readStat, type Stat } from './records.ts'
import { type Request, request } from './requests.ts'

/** A znode that stays until it is deleted, or until the session ends. */
export interface OrdinaryMode {
  /** Whether the server deletes it when this session ends. */
  readonly ephemeral?: boolean
  /** Whether the server appends ten digits, counted per parent, to the name. */
  readonly sequential?: boolean
  readonly container?: false
  readonly ttl?: never
}

/** A znode that the server deletes after its last child. */
export interface ContainerMode {
  /** Marks a container: deleted by the server some time (a minute) after its last child; never before it had one. */
  readonly container: true
  readonly ephemeral?: false
  readonly sequential?: false
  readonly ttl?: never
}

/** A znode that the server deletes when it has not been written for some time. */
export interface ExpiringMode {
  /**
   * Time after which the server deletes the znode, if it was not written and has no children (checked about every
   * minute): at least 1 ms, at most some 34 years. Servers must be started with `extendedTypesEnabled=true`, or the
   * create fails with Unimplemented.
   */
  readonly ttl: Duration
  readonly sequential?: boolean
  readonly ephemeral?: false
  readonly container?: false
}

/** Kind and ACL of a new znode. By default it is persistent. */
export type CreateMode = (OrdinaryMode | ContainerMode | ExpiringMode) & {
  /** ACL; the client's `acl` by default, which is open to all unless set. */
  readonly acl?: readonly Acl[]
}

/** A mode as it may arrive from callers that do not use the compiler. */
type UncheckedMode = { readonly [K in 'ephemeral' | 'sequential' | 'container']?: boolean | undefined } & {
  readonly ttl?: Duration | undefined
}

/** Limit of a TTL: servers keep it in 40 bits. */
const MAX_TTL_MS = 2 ** 40 - 1

interface CreateKind {
  readonly opcode: number
  readonly flag: number
  readonly ttl?: bigint
}

/**
 * Chooses the operation and the flags.
 *
 * @throws InvalidArgument for a combination that servers do not support, and for a TTL out of range
 */
export function toCreateKind({ ephemeral, sequential, container, ttl }: UncheckedMode): CreateKind {
  if (container) {
    const other = ephemeral ? 'ephemeral' : sequential ? 'sequential' : ttl !== undefined ? 'ttl' : undefined
    if (other) throw new InvalidArgument(`a container cannot be ${other}: leave out one of the two options`)
    return { opcode: OPCODE.createContainer, flag: CREATE_FLAG.container }
  }
  if (ttl !== undefined) {
    if (ephemeral) throw new InvalidArgument('an ephemeral znode cannot have a ttl: leave out one of the two options')
    const ms = Math.round(toMilliseconds(ttl, 'ttl'))
    if (ms < 1 || ms > MAX_TTL_MS) throw new InvalidArgument(`ttl must be between 1 and ${MAX_TTL_MS} ms, got ${ms} ms`)
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

/** Result of a create. */
export interface Created {
  /** Path, with the digits of a sequential znode. */
  readonly path: string
  readonly stat: Stat
}

export function create(path: string, data: Uint8Array | null, mode: CreateMode): Request<Created> {
  const kind = toCreateKind(mode)
  return request({
    operation: 'create',
    opcode: kind.opcode,
    path,
    write: (writer) => writeCreate(writer, { path, data, ...defined({ acl: mode.acl }) }, kind),
    read: (body) => ({ path: body.text(), stat: readStat(body) }),
  })
}
