/** Access control lists: identities and their permissions. */
import { createHash } from 'node:crypto'
import { InvalidArgument } from '../../core/errors.ts'
import { assertInteger, assertList } from './arguments.ts'
import type { JuteReader, JuteWriter } from './jute.ts'

/** An identity in a scheme: `world`/`anyone`, `digest`/`user:hash`, `sasl`/`user`, `ip`/`10.0.0.0/8`, … */
export interface Identity {
  readonly scheme: string
  readonly id: string
}

/** An entry of an ACL: an identity and its permissions. */
export interface Acl extends Identity {
  /** A sum of {@link PERMISSION}s. */
  readonly permissions: number
}

/** Permissions. CREATE and DELETE are about children and are checked on the parent; ADMIN allows to set the ACL. */
export const PERMISSION = { READ: 1, WRITE: 2, CREATE: 4, DELETE: 8, ADMIN: 16, ALL: 31 } as const

const ANYONE: Identity = { scheme: 'world', id: 'anyone' }

/**
 * ACLs for common cases.
 *
 * @example
 * const own = { permissions: PERMISSION.ALL, ...digestId('ada', password) }
 * await zookeeper.create('/notes', data, { acl: [own, ...ACL.read] })
 */
export const ACL = {
  /** Everything for all: the default of a znode. */
  open: [{ permissions: PERMISSION.ALL, ...ANYONE }] as readonly Acl[],
  /** Everything for the creator, under each of its identities; InvalidAcl for a client without any. */
  creatorAll: [{ permissions: PERMISSION.ALL, scheme: 'auth', id: '' }] as readonly Acl[],
  /** READ for all, and nothing else. */
  read: [{ permissions: PERMISSION.READ, ...ANYONE }] as readonly Acl[],
} as const

/** Returns the identity of clients that call `addAuth('digest', 'user:password')`. It does not reveal the password. */
export function digestId(user: string, password: string): Identity {
  if (user === '' || user.includes(':'))
    throw new InvalidArgument('the user of a digest must be a non-empty name without a colon')
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

/**
 * Checks an entry before it is encoded.
 *
 * @throws InvalidArgument for values that would be sent as something else
 */
function checkAcl(acl: Acl): void {
  const { permissions, scheme, id }: Partial<Acl> = Object(acl)
  assertInteger(permissions, 'acl: permissions', { from: 0, to: PERMISSION.ALL })
  if (typeof scheme !== 'string' || typeof id !== 'string')
    throw new InvalidArgument("acl: an entry needs a scheme and an id, such as { scheme: 'world', id: 'anyone' }")
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
