/** A board's whole life, and every znode that it makes on the way. */
import { ZooKeeperLayout } from '../../../../src/board/backends/zookeeper/store/layout.ts'
import type { JobBoard } from '../../../../src/board/index.ts'
import { type Acl, NoNode, type ZooKeeper } from '../../../../src/zookeeper/index.ts'
import { claimed, namesOn } from '../../jobs.ts'

/** A znode of a board, by what it is: `posting`, `.permits/…/x`, `sessions/…`. */
type Kind = string

/** The ACLs that were seen, by kind of znode. */
export class AclRecorder {
  readonly acls = new Map<Kind, readonly Acl[]>()
  readonly #observer: ZooKeeper
  readonly #layout: ZooKeeperLayout

  /** @param observer may see everything */
  constructor(observer: ZooKeeper, path: string) {
    this.#observer = observer
    this.#layout = new ZooKeeperLayout(path)
  }

  /** Every path there is now under and beside the board's. */
  async paths(): Promise<string[]> {
    return (await Promise.all([this.#layout.path, this.#layout.sessionsFolder].map((top) => this.#under(top)))).flat()
  }

  /** @throws Error where one kind of znode has two ACLs */
  async look(): Promise<void> {
    for (const path of await this.paths()) {
      const found = await this.#observer.getACL(path).catch((error: unknown) => {
        if (error instanceof NoNode) return undefined
        throw error
      })
      if (!found) continue
      const kind = this.#kindOf(path)
      const before = this.acls.get(kind) ?? found.acl
      if (JSON.stringify(before) !== JSON.stringify(found.acl)) throw new Error(`${path}: not the ACL of other ${kind}`)
      this.acls.set(kind, found.acl)
    }
  }

  async #under(top: string): Promise<string[]> {
    const listed = await this.#observer.getChildren(top).catch((error: unknown) => {
      if (error instanceof NoNode) return undefined
      throw error
    })
    if (!listed) return []
    return [top, ...(await Promise.all(listed.names.map((name) => this.#under(`${top}/${name}`)))).flat()]
  }

  #kindOf(path: string): Kind {
    const { path: top, sessionsFolder } = this.#layout
    if (path.startsWith(sessionsFolder)) return path === sessionsFolder ? 'sessions' : 'sessions/marker'
    const parts = path.slice(top.length + 1).split('/')
    return parts.map((part, depth) => (part.startsWith('.') ? part : nameOf(part, { depth }))).join('/')
  }
}

function nameOf(part: string, { depth }: { depth: number }): string {
  if (part.endsWith('.lock')) return 'lock'
  if (/^(s-)?job\d+$/.test(part)) return part.startsWith('s-') ? 's-job' : 'job'
  return part === 'x' || depth === 0 ? part : '…'
}

/** What {@link exerciseBoard} leaves traces of. */
export const KINDS: readonly Kind[] = [
  '',
  '.cancel',
  '.cancel/job',
  '.entities',
  '.entities/…',
  '.entities/…/…',
  '.gate',
  '.keys',
  '.keys/…',
  '.permits',
  '.permits/…',
  '.permits/…/s-job',
  '.permits/…/x',
  '.records',
  '.records/…',
  '.records/…/…',
  '.trash',
  '.trash/job',
  'job',
  'lock',
  'sessions',
  'sessions/marker',
]

/** Everything that can be done on a board, with a look whenever something is new. */
export async function exerciseBoard(board: JobBoard, seen?: AclRecorder): Promise<void> {
  const look = async () => seen?.look()
  await using _entity = await board.registerEntity({ kind: 'worker', name: 'one', metadata: {} })
  const alone = await board.post('flow', {}, { name: 'alone', resources: { exclusive: ['disk'] }, key: 'k' })
  await board.post('flow', {}, { name: 'together', resources: { shared: ['net'] }, delay: '1ms' })
  await look()
  const first = await claimed(board, 'alone')
  const second = await claimed(board, 'together')
  await board.cancel(alone, { reason: 'a test' })
  await look()
  await first.trash({ reason: 'broken' })
  await second.abandon()
  await look()
  for await (const trashed of board.trashed()) await board.restore(trashed)
  await (await claimed(board, 'alone')).consume()
  await (await claimed(board, 'together')).trash()
  for await (const trashed of board.trashed()) await board.purge(trashed)
  await board.pause()
  await board.resume()
  await look()
  const left = await namesOn(board)
  if (left.length > 0) throw new Error(`still on the board: ${left.join()}`)
}
