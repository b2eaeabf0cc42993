/**
 * Finds out which part of a path is the dashboard's own. The part before it is the mount, unless the application or the framework has given
 * the mount:
 *
 * | path | mounted at | own part |
 * |---|---|---|
 * | `/` | | `/` |
 * | `/b/main/jobs` | | `/b/main/jobs`, a page |
 * | `/ops/b/main/jobs` | `/ops` | `/b/main/jobs` |
 * | `/ops/api/v1/session` | `/ops` | `/api/v1/session` |
 * | `/ops` | | none: the browser is sent to `/ops/` |
 *
 * A proxy or framework that strips its prefix needs no other rule: pages name their base relatively (`../../`), as seen from the browser.
 */

const ROUTES = ['api', 'page', 'asset'] as const

export interface Route {
  readonly kind: (typeof ROUTES)[number]
  /** The path of the mount, without a slash at its end; empty at the root. */
  readonly mount: string
  /** The path below the mount, from its slash. */
  readonly path: string
}

export type Routed =
  | Route
  /** A path of a directory without its slash. */
  | { readonly kind: 'add-slash'; readonly location: string }

export interface PathRules {
  readonly isBoard: (name: string) => boolean
  readonly isAsset: (file: string) => boolean
  /** The mount, if the application has said it. */
  readonly base?: string | undefined
}

/** Returns the route of a path as it is in the URL; undefined for a path that is none, or tries to leave its folder. */
export function route(pathname: string, rules: PathRules): Routed | undefined {
  const segments = toSegments(pathname)
  if (!segments) return undefined
  const { base } = rules
  if (base !== undefined && base !== '') {
    if (pathname === base) return { kind: 'add-slash', location: toDirectory(base) }
    // A framework may have stripped it.
    if (pathname.startsWith(`${base}/`)) {
      const own = segments.slice(base.split('/').length - 1)
      return split({ segments: own, pathname: pathname.slice(base.length), mount: base }, rules, { fixed: true })
    }
  }
  return split({ segments, pathname, mount: '' }, rules, { fixed: base !== undefined })
}

interface Parts {
  readonly segments: readonly string[]
  readonly pathname: string
  readonly mount: string
}

function split(
  { segments, pathname, mount }: Parts,
  { isBoard, isAsset }: PathRules,
  { fixed }: { readonly fixed: boolean },
): Routed | undefined {
  const raw = pathname.split('/').slice(1)
  const last = segments.length - 1
  const at = (index: number, kind: Route['kind']): Route => {
    const before = raw.slice(0, index)
    const own = `/${raw.slice(index).join('/')}`
    return { kind, mount: [mount, ...before].join('/'), path: own }
  }
  for (const [index, segment] of segments.entries()) {
    if (fixed && index > 0) break
    if (segment === 'api' && segments[index + 1] === 'v1') return at(index, 'api')
    if (segment === 'b' && isBoard(segments[index + 1] ?? '')) return at(index, 'page')
    if (index === last && segment !== '' && isAsset(segment)) return at(index, 'asset')
  }
  // The page of a board that is not here: the page says so. Without this, it would be taken for a mount.
  const unknown = segments.indexOf('b')
  if (unknown >= 0 && segments[unknown + 1] && segments[unknown + 2]) return at(unknown, 'page')
  const end = segments[last] ?? ''
  const isApi = segments.some((segment, index) => segment === 'api' && segments[index + 1] === 'v1')
  if (fixed) return end.includes('.') || isApi ? undefined : at(0, 'page')
  if (segments.some((segment) => segment.startsWith('.'))) return undefined
  if (end === '') return at(last, 'page')
  // Files that browsers ask for by themselves, such as favicon.ico.
  return end.includes('.') ? undefined : { kind: 'add-slash', location: toDirectory(pathname) }
}

/** Returns the decoded segments; undefined for a path with tricks. */
function toSegments(pathname: string): string[] | undefined {
  if (!pathname.startsWith('/') || pathname.includes('\\')) return undefined
  const raw = pathname.slice(1).split('/')
  const segments: string[] = []
  for (const [index, part] of raw.entries()) {
    const segment = decode(part)
    const isEnd = index === raw.length - 1
    if (segment === undefined || (segment === '' && !isEnd) || isTrick(segment)) return undefined
    segments.push(segment)
  }
  return segments
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** Whether a segment would mean something else to a file system. The name of a flow may have a slash, `jobboard%2Fhold`. */
function isTrick(segment: string): boolean {
  if (/[\\\p{Cc}]/u.test(segment)) return true
  const parts = segment.split('/')
  return parts.some((part) => part === '.' || part === '..' || (part === '' && parts.length > 1))
}

/** Returns the same path with a slash, relatively: without the dot, `https:evil.example` would be another server. */
export function toDirectory(path: string): string {
  return `./${path.slice(path.lastIndexOf('/') + 1)}/`
}

/** Returns the mount as a browser sees it from a page: `./`, `../../`. */
export function relativeBase(path: string): string {
  const depth = path.split('/').length - 2
  return depth === 0 ? './' : '../'.repeat(depth)
}
