/**
 * Where logbooks are on ZooKeeper:
 *
 *     <path>                                   what this is
 *     <path>/<two hex digits>/<book>           the book
 *     <path>/…/<book>/<flow>                   the flow, but for its atoms; rewritten by each write
 *     <path>/…/<book>/<flow>/<number>          an atom
 *     <path>/…/<book>/<flow>/t-<term>          who may write: the newest acquire
 *     <path>/…/<book>/.gone-<mark>             the book is being removed
 */
import { encodeName, shardName } from '../names.ts'

export const DEFAULT_PATH = '/taskflow/logbooks'

const TERM = 't-'

export class Layout {
  readonly path: string

  constructor(path: string) {
    this.path = path
  }

  /** The parent of a path; `/` at the top. */
  above(path: string): string {
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
  return `${flow}/${TERM}${term}`
}

export function isTermPath(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith(TERM)
}

const GONE = '.gone-'

export function gonePath(book: string, mark: string): string {
  return `${book}/${GONE}${mark}`
}

/** Names that come from users are encoded and then hold no dot. */
export function isFlowName(name: string): boolean {
  return !name.includes('.')
}

/** The atoms among a flow's children, in the order in which they were first recorded. */
export function positionsIn(names: readonly string[]): number[] {
  const positions = names.filter((name) => !name.startsWith(TERM)).map(Number)
  return positions.sort((a, b) => a - b)
}
