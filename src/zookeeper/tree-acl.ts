/**
 * Who may do what with the znodes of a board, or of logbooks. The ACL is the tree's: who makes it chooses it, it is kept
 * where ZooKeeper keeps it, on the path that everything is under, and whoever opens it makes every znode with the same. So
 * no two processes can disagree, and nobody has to be told.
 */
import { InvalidArgument } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { accessDeniedError, type Tenant } from './access.ts'
import { isIdentity } from './own-identities.ts'
import { ACL, type Acl } from './protocol/acl.ts'

/** Which ACL a tree is to have. */
export interface WantedAcl {
  /** What the path has to have. */
  readonly acl?: readonly Acl[]
  /** Whether this client says who it is: then what it makes is its own, and not everybody's. */
  readonly identified?: boolean
}

/** For a path that is made. */
export function newTreeAcl({ acl, identified }: WantedAcl): readonly Acl[] {
  return acl ?? (identified ? ACL.creatorAll : ACL.open)
}

/**
 * For what is made below a path that is there.
 *
 * @param found what the path has
 * @param options.own the entries of it that name this client: those alone are the creator's
 * @throws InvalidArgument when it is not what was asked for
 * @throws AccessDenied when this client is not shown all of it
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
    const says = `${tenant} ${path} is there and has another ACL than the one that was given${names}`
    throw new InvalidArgument(`${says}; leave the ACL out to take the one that is there, or choose another path`)
  }
  if (!found.some(isMasked)) return found
  if (acl?.every(({ scheme }) => scheme !== CREATOR_SCHEME)) return acl
  throw accessDeniedError(
    `opening ${tenant} ${path}: only who may ADMIN it is shown its whole ACL, which this client's znodes need`,
    { tenant, instead: 'give that ACL as the option acl' },
  )
}

/** Whether everybody may do everything. */
export function isOpenToAll(acl: readonly Acl[]): boolean {
  return ACL.open.every((open) => acl.some((each) => isSame(open, each)))
}

/**
 * Returns whom an ACL lets in beside this client, for a warning to those who gave credentials and did not say whom they
 * expect; undefined where there is nothing to warn of.
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

/** Warns of those whom {@link findStrangers} has found. */
export function warnOfStrangers(
  strangers: string | undefined,
  { tenant, path, log }: { readonly tenant: Tenant; readonly path: string; readonly log: Logger | undefined },
): void {
  if (strangers === undefined) return
  const [are, it, one] = tenant === 'board' ? ['is', 'it', 'a board that is'] : ['are', 'them', 'logbooks that are']
  log?.warn(
    { path, strangers },
    `${tenant} ${path} ${are} open to ${strangers}, though this client gave credentials: whoever is named may read and change ` +
      `${it}; give the ACL you expect as the option acl, or ?acl=creator for ${one} yours alone`,
  )
}

/** Whether both let the same identities do the same. */
export function isSameAcl(one: readonly Acl[], other: readonly Acl[]): boolean {
  const holds = (all: readonly Acl[], each: Acl) => all.some((some) => isSame(some, each) || isSame(each, some))
  return one.every((each) => holds(other, each)) && other.every((each) => holds(one, each))
}

/** Without hashes. */
function formatIdentities(acl: readonly Acl[]): string {
  const names = acl.map(({ scheme, id }) => `${scheme}:${scheme === 'digest' ? id.slice(0, id.lastIndexOf(':')) : id}`)
  return [...new Set(names)].join(', ')
}

/** Stands for whoever makes a znode: the server puts their identities in its place. */
const CREATOR_SCHEME = 'auth'

function isExpectedEntry(found: readonly Acl[], wanted: readonly Acl[], own: ReadonlySet<Acl>): boolean {
  const named = wanted.filter(({ scheme }) => scheme !== CREATOR_SCHEME)
  const creators = wanted.filter(({ scheme }) => scheme === CREATOR_SCHEME)
  const isNamed = (acl: Acl) => named.some((each) => isSame(each, acl))
  // Anybody can make a path first, with an entry for us and one for themselves.
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

/** Without ADMIN a server shows an `x` instead of a hash. */
function isMasked({ scheme, id }: Acl): boolean {
  return scheme === 'digest' && id.endsWith(':x')
}
