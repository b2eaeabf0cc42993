/**
 * Where logbooks are on ZooKeeper:
 *
 *     <path>                                   what this is
 *     <path>/<two hex digits>/<book>           the book
 *     <path>/…/<book>/<flow>                   the flow, but for its atoms; rewritten by each write
 *     <path>/…/<book>/<flow>/<number>          an atom
 *     <path>/…/<book>/<flow>/t-<term>          who may write: the newest acquire
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

/** The atoms among a flow's children, in the order in which they were first recorded. */
export function positionsIn(names: readonly string[]): number[] {
  const positions = names.filter((name) => !name.startsWith(TERM)).map(Number)
  return positions.sort((a, b) => a - b)
}
