/**
 * The ACL of the tree of a board, or of logbooks. The process that creates the tree chooses it, ZooKeeper keeps it on
 * the tree's top path, and every process that opens the tree creates all znodes with the same ACL. No two processes can
 * disagree, and none needs to be configured.
 */
import { InvalidArgument } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { accessDeniedError, type Tenant } from './access.ts'
import { isIdentity } from './own-identities.ts'
import { ACL, type Acl } from './protocol/acl.ts'

/** Requested ACL of a tree. */
export interface WantedAcl {
  /** ACL that the path must have. */
  readonly acl?: readonly Acl[]
  /** Whether this client has credentials: what it creates is then its own, and not open to all. */
  readonly identified?: boolean
}

/** Returns the ACL of a tree that is created. */
export function newTreeAcl({ acl, identified }: WantedAcl): readonly Acl[] {
  return acl ?? (identified ? ACL.creatorAll : ACL.open)
}

/**
 * Returns the ACL for znodes below a path that exists. `own` are the entries of `found` that name this client: the
 * creator's entries must be among them.
 *
 * @param found ACL of the path
 * @throws InvalidArgument when it is not the requested ACL
 * @throws AccessDenied when the server does not show this client all of it
 */
export function existingTreeAcl(
  found: readonly Acl[],
  wanted: WantedAcl,
  { tenant, path, own }: { readonly tenant: Tenant; readonly path: string; readonly own: ReadonlySet<Acl> },
): readonly Acl[] {
  const { acl } = wanted
  if (acl && !isExpectedEntry(found, acl, own)) {
    const strangers = acl.some(({ scheme }) => scheme === CREATOR_SCHEME)
      ? formatIdentities(found.filter((each) => !own.has(each)))
      : ''
    const names = strangers === '' ? '' : ` (it names ${strangers})`
    const says = `${tenant} ${path} exists and has another ACL than the given one${names}`
    throw new InvalidArgument(`${says}; leave the ACL out to use the existing one, or choose another path`)
  }
  if (!found.some(isMasked)) return found
  if (acl?.every(({ scheme }) => scheme !== CREATOR_SCHEME)) return acl
  throw accessDeniedError(
    `opening ${tenant} ${path}: the server shows its whole ACL only to clients with ADMIN, and this client needs it for its znodes`,
    { tenant, instead: 'give that ACL as the option acl' },
  )
}

/** Returns whether the ACL grants everything to all. */
export function isOpenToAll(acl: readonly Acl[]): boolean {
  return ACL.open.every((open) => acl.some((each) => isSame(open, each)))
}

/**
 * Returns the identities other than this client to which an ACL grants access, for a warning to users who gave
 * credentials and no ACL; undefined where there is nothing to warn of.
 */
export function findStrangers(
  found: readonly Acl[],
  { acl, identified }: WantedAcl,
  own: ReadonlySet<Acl>,
): string | undefined {
  if (acl || !identified) return undefined
  const strangers = formatIdentities(found.filter((each) => !own.has(each)))
  return strangers === '' ? undefined : strangers
}

/** Warns of the identities that {@link findStrangers} has found. */
export function warnOfStrangers(
  strangers: string | undefined,
  { tenant, path, log }: { readonly tenant: Tenant; readonly path: string; readonly log: Logger | undefined },
): void {
  if (strangers === undefined) return
  const [are, it, one] = tenant === 'board' ? ['is', 'it', 'a board that is'] : ['are', 'them', 'logbooks that are']
  log?.warn(
    { path, strangers },
    `${tenant} ${path} ${are} open to ${strangers}, though this client gave credentials: all of these may read and change ` +
      `${it}; give the ACL you expect as the option acl, or ?acl=creator for ${one} yours alone`,
  )
}

/** Returns whether both ACLs grant the same to the same identities. */
export function isSameAcl(one: readonly Acl[], other: readonly Acl[]): boolean {
  const holds = (all: readonly Acl[], each: Acl) => all.some((some) => isSame(some, each) || isSame(each, some))
  return one.every((each) => holds(other, each)) && other.every((each) => holds(one, each))
}

/** Formats identities without their hashes. */
function formatIdentities(acl: readonly Acl[]): string {
  const names = acl.map(({ scheme, id }) => `${scheme}:${scheme === 'digest' ? id.slice(0, id.lastIndexOf(':')) : id}`)
  return [...new Set(names)].join(', ')
}

/** Scheme that stands for the creator of a znode: the server replaces it by the creator's identities. */
const CREATOR_SCHEME = 'auth'

function isExpectedEntry(found: readonly Acl[], wanted: readonly Acl[], own: ReadonlySet<Acl>): boolean {
  const named = wanted.filter(({ scheme }) => scheme !== CREATOR_SCHEME)
  const creators = wanted.filter(({ scheme }) => scheme === CREATOR_SCHEME)
  const isNamed = (acl: Acl) => named.some((each) => isSame(each, acl))
  // A foreign client could create the path first, with an entry for this client and one for itself.
  const isCreators = (acl: Acl) => own.has(acl) && creators.some((each) => each.permissions === acl.permissions)
  return (
    named.every((each) => found.some((acl) => isSame(each, acl))) &&
    found.every((acl) => isNamed(acl) || isCreators(acl)) &&
    (creators.length === 0 || found.some(isCreators))
  )
}

function isSame(wanted: Acl, found: Acl): boolean {
  return wanted.permissions === found.permissions && isIdentity(wanted, found)
}

/** Returns whether a hash is missing: servers show an `x` instead of it to clients without ADMIN. */
function isMasked({ scheme, id }: Acl): boolean {
  return scheme === 'digest' && id.endsWith(':x')
}
