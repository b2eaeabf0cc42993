/**
 * The znodes of logbooks on ZooKeeper:
 *
 *     <path>                                   the root, with the format
 *     <path>/<two hex digits>/<book>           the book
 *     <path>/…/<book>/<flow>                   the flow without its atoms; rewritten by each write
 *     <path>/…/<book>/<flow>/<number>          an atom
 *     <path>/…/<book>/<flow>/t-<term>          the newest acquire, which may write
 *     <path>/…/<book>/.gone-<mark>             the book is being removed
 */
import { encodeName, shardName } from '../names.ts'

export const DEFAULT_PATH = '/taskflow/logbooks'

const TERM_PREFIX = 't-'

export class LogbookLayout {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** Returns the parent of a path; `/` at the top. */
  parentOf(path: string): string {
    return path.slice(0, path.lastIndexOf('/')) || '/'
  }

  shard(book: string): string {
    return `${this.path}/${shardName(book)}`
  }

  book(uuid: string): string {
    return `${this.shard(uuid)}/${encodeName(uuid)}`
  }

  flow(book: string, uuid: string): string {
    return `${this.book(book)}/${encodeName(uuid)}`
  }
}

export function atomPath(flow: string, position: number): string {
  return `${flow}/${position}`
}

export function termPath(flow: string, term: string): string {
  return `${flow}/${TERM_PREFIX}${term}`
}

export function isTermPath(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith(TERM_PREFIX)
}

const GONE_PREFIX = '.gone-'

export function gonePath(book: string, mark: string): string {
  return `${book}/${GONE_PREFIX}${mark}`
}

/** Returns whether a name belongs to a flow: encoded names of users contain no dot. */
export function isFlowName(name: string): boolean {
  return !name.includes('.')
}

/**
 * Returns the positions of the atoms among a flow's children, in the order in which they were first recorded. A child
 * whose name this library does not create is not an atom: the path made of its number would be a different, missing
 * one, and a reader would take that for a flow that is being removed, and read again forever.
 */
export function toPositions(names: readonly string[]): number[] {
  const positions = names.filter((name) => POSITION.test(name)).map(Number)
  return positions.filter(Number.isSafeInteger).sort((a, b) => a - b)
}

const POSITION = /^(?:0|[1-9]\d{0,15})$/
