/** Who may do what with a znode. */
import { createHash } from 'node:crypto'
import { InvalidArgument } from '../../core/errors.ts'
import { assertInteger, assertList } from './arguments.ts'
import type { JuteReader, JuteWriter } from './jute.ts'

/** Somebody, as a scheme knows them: `world`/`anyone`, `digest`/`user:hash`, `sasl`/`user`, `ip`/`10.0.0.0/8`, … */
export interface Identity {
  readonly scheme: string
  readonly id: string
}

/** What somebody may do. */
export interface Acl extends Identity {
  /** A sum of {@link PERMISSION}s. */
  readonly permissions: number
}

/** CREATE and DELETE are about children and are checked on the parent; ADMIN is setting the ACL. */
export const PERMISSION = { READ: 1, WRITE: 2, CREATE: 4, DELETE: 8, ADMIN: 16, ALL: 31 } as const

const ANYONE: Identity = { scheme: 'world', id: 'anyone' }

/**
 * The lists that are wanted most.
 *
 * @example
 * const own = { permissions: PERMISSION.ALL, ...digestId('ada', password) }
 * await zookeeper.create('/notes', data, { acl: [own, ...ACL.read] })
 */
export const ACL = {
  /** Everybody may do everything: what a znode gets by default. */
  open: [{ permissions: PERMISSION.ALL, ...ANYONE }] as readonly Acl[],
  /** Whoever creates the znode may do everything, as each of their identities; InvalidAcl for those who gave none. */
  creatorAll: [{ permissions: PERMISSION.ALL, scheme: 'auth', id: '' }] as readonly Acl[],
  /** Everybody may read, nobody may do anything else. */
  read: [{ permissions: PERMISSION.READ, ...ANYONE }] as readonly Acl[],
} as const

/** The identity of those who call `addAuth('digest', 'user:password')`. The password cannot be read from it. */
export function digestId(user: string, password: string): Identity {
  if (user === '' || user.includes(':')) throw new InvalidArgument('the user of a digest needs a name without a colon')
  const hash = createHash('sha1').update(`${user}:${password}`).digest('base64')
  return { scheme: 'digest', id: `${user}:${hash}` }
}

const LENGTH_BYTES = 4
const MIN_BYTES = { acl: LENGTH_BYTES * 3, identity: LENGTH_BYTES * 2 }

export function writeAcls(writer: JuteWriter, acls: readonly Acl[]): void {
  assertList(acls, 'acl')
  for (const each of acls) checkAcl(each)
  writer.vector(acls, (acl) => writer.int(acl.permissions).text(acl.scheme).text(acl.id))
}

/** @throws InvalidArgument for what would be sent as something else */
function checkAcl(acl: Acl): void {
  const { permissions, scheme, id }: Partial<Acl> = Object(acl)
  assertInteger(permissions, 'acl: permissions', { from: 0, to: PERMISSION.ALL })
  if (typeof scheme !== 'string' || typeof id !== 'string')
    throw new InvalidArgument(
      "acl: whom it is about needs a scheme and an id, such as { scheme: 'world', id: 'anyone' }",
    )
}

export function readAcls(reader: JuteReader): Acl[] {
  return reader.vector(MIN_BYTES.acl, () => ({ permissions: reader.int(), ...readIdentity(reader) }))
}

export function readIdentities(reader: JuteReader): Identity[] {
  return reader.vector(MIN_BYTES.identity, () => readIdentity(reader))
}

function readIdentity(reader: JuteReader): Identity {
  return { scheme: reader.text(), id: reader.text() }
}
