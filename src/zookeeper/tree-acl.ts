/**
 * Who may do what with the znodes of a board, or of logbooks. The ACL is the tree's: who makes it chooses it, it is kept
 * where ZooKeeper keeps it, on the path that everything is under, and whoever opens it makes every znode with the same. So
 * no two processes can disagree, and nobody has to be told.
 */
import { InvalidArgument } from '../core/errors.ts'
import { accessDenied, type Tenant } from './access.ts'
import { ACL, type Acl } from './acl.ts'

/** Which ACL a tree is to have. */
export interface WantedAcl {
  /** What the path has to have. */
  readonly acl?: readonly Acl[]
  /** Whether this client says who it is: then what it makes is its own, and not everybody's. */
  readonly identified?: boolean
}

/** For a path that is made. */
export function aclOfNewTree({ acl, identified }: WantedAcl): readonly Acl[] {
  return acl ?? (identified ? ACL.creatorAll : ACL.open)
}

/**
 * For what is made below a path that is there.
 *
 * @param found what the path has
 * @throws InvalidArgument when it is not what was asked for
 * @throws AccessDenied when this client is not shown all of it
 */
export function aclOfTree(
  found: readonly Acl[],
  wanted: WantedAcl,
  { tenant, path }: { readonly tenant: Tenant; readonly path: string },
): readonly Acl[] {
  const { acl } = wanted
  if (acl && !isMeant(found, acl)) {
    const says = `${tenant} ${path} is there and has another ACL than the one that was given`
    throw new InvalidArgument(`${says}; leave the ACL out to take the one that is there, or choose another path`)
  }
  if (!found.some(isMasked)) return found
  if (acl?.every(({ scheme }) => scheme !== CREATOR)) return acl
  throw accessDenied(
    `opening ${tenant} ${path}: only who may ADMIN it is shown its whole ACL, which this client's znodes need`,
    { tenant, instead: 'give that ACL as the option acl' },
  )
}

/** Whether everybody may do everything. */
export function isForAll(acl: readonly Acl[]): boolean {
  return ACL.open.every((open) => acl.some((each) => isSame(open, each)))
}

/** Stands for whoever makes a znode: the server puts their identities in its place. */
const CREATOR = 'auth'
/** Such identities nobody is given by having made something. */
const NOBODYS: ReadonlySet<string> = new Set(['world', 'ip'])

function isMeant(found: readonly Acl[], wanted: readonly Acl[]): boolean {
  const named = wanted.filter(({ scheme }) => scheme !== CREATOR)
  const creators = wanted.filter(({ scheme }) => scheme === CREATOR)
  const isNamed = (acl: Acl) => named.some((each) => isSame(each, acl))
  // We have read what is there, so it is ours, too, if it is its maker's.
  const isCreators = ({ scheme, permissions }: Acl) =>
    !NOBODYS.has(scheme) && creators.some((each) => each.permissions === permissions)
  return (
    named.every((each) => found.some((acl) => isSame(each, acl))) &&
    found.every((acl) => isNamed(acl) || isCreators(acl)) &&
    (creators.length === 0 || found.some(isCreators))
  )
}

function isSame(wanted: Acl, found: Acl): boolean {
  if (wanted.scheme !== found.scheme || wanted.permissions !== found.permissions) return false
  return wanted.id === found.id || (isMasked(found) && userOf(wanted) === userOf(found))
}

/** Without ADMIN a server shows an `x` instead of a hash. */
function isMasked({ scheme, id }: Acl): boolean {
  return scheme === 'digest' && id.endsWith(':x')
}

function userOf({ id }: Acl): string {
  return id.slice(0, id.lastIndexOf(':'))
}
