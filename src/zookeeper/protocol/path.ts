/**
 * Paths: their checks (servers answer "no such znode" to most malformed ones) and their conversion through a chroot.
 */
import { InvalidArgument } from '../../core/errors.ts'

/** Characters that servers refuse: control characters, surrogates (so all above U+FFFF), private use and specials. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: naming them is the point
const FORBIDDEN_PATTERN = /[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/

const WRONG_PART_PATTERN = /\/(\.{0,2})(?:\/|$)/

interface PathOptions {
  readonly sequential?: boolean | undefined
  readonly what?: string
}

/**
 * Checks a path before it is sent: servers answer a bad path with a number, or close the connection.
 *
 * @param what the name of the value, for the error
 * @throws InvalidArgument unless the path is absolute, has no empty, `.` or `..` part and no forbidden character
 */
export function checkPath(path: string, { sequential = false, what = 'path' }: PathOptions = {}): void {
  if (typeof path !== 'string') throw new InvalidArgument(`${what} must be a text such as /app, got ${typeof path}`)
  const fault = findPathFault(sequential && path.length > 1 && path.endsWith('/') ? `${path}0` : path)
  if (fault) throw new InvalidArgument(`${what} ${JSON.stringify(path)}: ${fault}`)
}

function findPathFault(path: string): string | undefined {
  if (!path.startsWith('/')) return 'it must begin with a slash'
  if (path === '/') return undefined
  if (path.endsWith('/')) return 'it must not end with a slash'
  if (FORBIDDEN_PATTERN.test(path)) return 'it has a character that ZooKeeper does not allow in paths'
  const wrong = WRONG_PART_PATTERN.exec(path)?.[1]
  return wrong === undefined ? undefined : `it must not have ${wrong === '' ? 'an empty part' : `a part ${wrong}`}`
}

/** Lists every znode from the top down to the path itself, without the root: `/a` and `/a/b` for `/a/b`. */
export function listAncestors(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '')
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)
}

/** Returns the parent's path; undefined for the root. */
export function parentPath(path: string): string | undefined {
  if (path === '/') return undefined
  const slash = path.lastIndexOf('/')
  return slash <= 0 ? '/' : path.slice(0, slash)
}

/** Converts paths between the user and the server: the client sees only what is below its chroot. */
export class Chroot {
  readonly #root: string

  /** @param root `''` or `/` where there is none */
  constructor(root: string) {
    this.#root = root === '/' ? '' : root
  }

  /** Returns the server's path for a user's. */
  toServerPath(path: string): string {
    if (this.#root === '') return path
    return path === '/' ? this.#root : this.#root + path
  }

  /** Returns the user's path for a server's; undefined for one outside the chroot. */
  toUserPath(path: string): string | undefined {
    if (this.#root === '') return path
    if (path === this.#root) return '/'
    return path.startsWith(`${this.#root}/`) ? path.slice(this.#root.length) : undefined
  }
}
