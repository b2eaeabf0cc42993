/**
 * Finds jobs that were posted, but whose answers were lost.
 *
 * Usually many such jobs were posted in one transaction: one lookup finds them all. A lookup for each job would list
 * the board, and read the trash, once per job.
 */
import { isError } from '../../../../core/errors.ts'
import { pagesOf } from '../../trash-pages.ts'
import type { ZooKeeperReader } from './reader.ts'

/** The state of a posted job: on the board under this id, or no longer on the board and maybe in the trash. */
type PostStatus = { readonly id: string } | { readonly trashed: boolean }

interface LostPostLookup {
  readonly posted: ReadonlyMap<string, string>
  /** The uuids of the jobs in the trash. The trash is read only if a job is missing on the board. */
  trashed?: Promise<ReadonlySet<string>>
}

export class LostPosts {
  readonly #reader: Pick<ZooKeeperReader, 'readPostedIn' | 'read' | 'trashIndex' | 'trashPage' | 'isTrashed'>
  /** Lookups by transaction, kept while they are in progress. */
  readonly #lookups = new Map<bigint, Promise<LostPostLookup>>()

  constructor(reader: Pick<ZooKeeperReader, 'readPostedIn' | 'read' | 'trashIndex' | 'trashPage' | 'isTrashed'>) {
    this.#reader = reader
  }

  /** Returns the state of a posted job. @param post.id the id, if the poster created it */
  async find(post: { readonly zxid: bigint; readonly uuid: string; readonly id?: string }): Promise<PostStatus> {
    const { zxid, uuid, id } = post
    if (id !== undefined) {
      const [job] = await this.#reader.read([id])
      return job ? { id } : { trashed: await this.#reader.isTrashed(id) }
    }
    const look = await this.#lookUp(zxid)
    const posted = look.posted.get(uuid)
    if (posted !== undefined) return { id: posted }
    look.trashed ??= this.#readTrashedUuids()
    return { trashed: (await look.trashed).has(uuid) }
  }

  #lookUp(zxid: bigint): Promise<LostPostLookup> {
    const lookup = this.#lookups.get(zxid)
    if (lookup !== undefined) return lookup
    const look = this.#reader.readPostedIn(zxid).then((posted) => ({ posted }))
    this.#lookups.set(zxid, look)
    const over = () => this.#lookups.delete(zxid)
    look.then(over, over)
    return look
  }

  async #readTrashedUuids(): Promise<ReadonlySet<string>> {
    const uuids = new Set<string>()
    for (const page of pagesOf(await this.#reader.trashIndex()))
      for (const entry of await this.#reader.trashPage(page)) if (!isError(entry)) uuids.add(entry.posting.uuid)
    return uuids
  }
}
