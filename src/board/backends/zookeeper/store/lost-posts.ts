/**
 * What became of jobs whose posts were done, when the answers were lost.
 *
 * They were posted many together as a rule, in one transaction: one look finds them all. A look for each would list the
 * board, and read the trash, as often as there were jobs in it.
 */
import { pagesOf } from '../../trash-pages.ts'
import type { BoardReader } from './reader.ts'

/** The job is on the board under this id; or it has left it, maybe for the trash. */
type PostStatus = { readonly id: string } | { readonly trashed: boolean }

interface LostPostLookup {
  readonly posted: ReadonlyMap<string, string>
  /** The uuids of what is in the trash. Read only where a job is missing. */
  trashed?: Promise<ReadonlySet<string>>
}

export class LostPosts {
  readonly #reader: Pick<BoardReader, 'readPostedIn' | 'read' | 'trashIndex' | 'trashPage' | 'isTrashed'>
  /** By transaction; as long as anybody waits for it. */
  readonly #lookups = new Map<bigint, Promise<LostPostLookup>>()

  constructor(reader: Pick<BoardReader, 'readPostedIn' | 'read' | 'trashIndex' | 'trashPage' | 'isTrashed'>) {
    this.#reader = reader
  }

  /** @param post.id where the poster made it */
  async find(post: { readonly zxid: bigint; readonly uuid: string; readonly id?: string }): Promise<PostStatus> {
    const { zxid, uuid, id } = post
    if (id !== undefined) {
      const [there] = await this.#reader.read([id])
      return there ? { id } : { trashed: await this.#reader.isTrashed(id) }
    }
    const look = await this.#lookUp(zxid)
    const posted = look.posted.get(uuid)
    if (posted !== undefined) return { id: posted }
    look.trashed ??= this.#readTrashedUuids()
    return { trashed: (await look.trashed).has(uuid) }
  }

  #lookUp(zxid: bigint): Promise<LostPostLookup> {
    const there = this.#lookups.get(zxid)
    if (there !== undefined) return there
    const look = this.#reader.readPostedIn(zxid).then((posted) => ({ posted }))
    this.#lookups.set(zxid, look)
    const over = () => this.#lookups.delete(zxid)
    look.then(over, over)
    return look
  }

  async #readTrashedUuids(): Promise<ReadonlySet<string>> {
    const uuids = new Set<string>()
    for (const page of pagesOf(await this.#reader.trashIndex()))
      for (const entry of await this.#reader.trashPage(page))
        if (!(entry instanceof Error)) uuids.add(entry.posting.uuid)
    return uuids
  }
}
