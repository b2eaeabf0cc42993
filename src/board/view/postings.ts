/**
 * What a view knows of the postings of its jobs: read when they are new or have changed, and not believed when they were
 * overtaken by a change. What changes while a job is claimed is read when the claim is released. Where all of it would take
 * too much memory, some is given up and read again when its turn comes: `kept-contents.ts`.
 */
import type { Backend, Stored, Unreadable } from '../backend.ts'
import type { Entry } from '../entry.ts'
import type { ClaimQueue } from '../queue/queue.ts'
import { ContentReader } from './content-reader.ts'
import { KeptContents } from './kept-contents.ts'

export interface PostingsOptions {
  readonly backend: Pick<Backend, 'read'>
  readonly queue: ClaimQueue
  /** Those of the view. */
  readonly entries: () => Iterable<Entry>
  /** How much of the postings stays in memory; 64 MiB by default. */
  readonly bytes?: number | undefined
  /** Ends everything that goes on in the background. */
  readonly signal: AbortSignal
  /** A posting was read, `first` for the first time. */
  readonly read: (entry: Entry, known: { readonly first: boolean }) => void
  /** There is no such posting. */
  readonly gone: (entry: Entry) => void
  /** Something was read, or there is nothing more to read for now. */
  readonly progressed: () => void
  readonly failed: (error: unknown) => void
}

export class Postings {
  readonly kept: KeptContents
  readonly #options: PostingsOptions
  readonly #reader: ContentReader
  /** Reads what was given up. Nobody who wants the view to be current waits for that. */
  readonly #givenUp: ContentReader
  /** Nobody here has ever been able to read these: a newer release's, say. */
  readonly #illegible = new Set<Entry>()

  /** @throws InvalidArgument for `bytes` that are no number of bytes */
  constructor(options: PostingsOptions) {
    this.#options = options
    const { backend, signal, progressed, failed, queue, entries, bytes } = options
    const reading = { backend, signal, progressed, failed }
    this.#reader = new ContentReader({
      ...reading,
      found: (entry, content) => {
        this.#found(entry, content)
        this.kept.arrived(entry)
      },
    })
    this.#givenUp = new ContentReader({ ...reading, found: (entry, content) => this.#found(entry, content) })
    this.kept = new KeptContents({
      ...{ limit: bytes, queue, entries, reader: this.#givenUp },
      unusable: (entry, error) => this.#hide(entry, error),
    })
  }

  get busy(): boolean {
    return this.#reader.busy
  }

  /** What was asked for up to now, for {@link hasRead}. */
  get requests(): number {
    return this.#reader.requests
  }

  hasRead(requests: number): boolean {
    return this.#reader.hasRead(requests)
  }

  /** Whether there are some of which nobody here can tell what job they are. */
  get hidesSome(): boolean {
    return this.#illegible.size > 0
  }

  want(entry: Entry): void {
    this.#reader.want(entry)
  }

  /** What was read is not so any more. While the job is claimed nobody needs it; the release asks for it. */
  outdate(entry: Entry): void {
    entry.changes += 1
    if (entry.content !== 'unread') entry.content = 'stale'
    if (!entry.claimed || entry.content === 'unread') this.want(entry)
    this.#options.queue.update(entry)
  }

  /** It is claimed, or not any more. */
  claimed(entry: Entry): void {
    this.kept.left(entry)
    if (entry.content === 'stale' && !entry.claimed) this.want(entry)
  }

  /** It is none of the view's any more. */
  forget(entry: Entry): void {
    this.#reader.forget(entry)
    this.#givenUp.forget(entry)
    this.kept.left(entry)
    this.#illegible.delete(entry)
  }

  adopt(entry: Entry, content: Stored | Unreadable): void {
    this.#reader.forget(entry)
    this.#givenUp.forget(entry)
    const first = entry.stored === undefined
    if ('error' in content) this.#illegibly(entry, content.error)
    else {
      entry.stored = content
      entry.content = 'fresh'
      entry.fault = undefined
      this.#illegible.delete(entry)
      this.#options.read(entry, { first })
    }
    this.#options.queue.update(entry)
  }

  #hide(entry: Entry, error: Error): void {
    this.#illegibly(entry, error)
    this.#options.queue.update(entry)
  }

  #illegibly(entry: Entry, error: Error): void {
    if (entry.fault !== error.message) this.#options.failed(error)
    entry.fault = error.message
    entry.content = 'unreadable'
    if (!entry.stored && entry.standing !== 'outside') this.#illegible.add(entry)
  }

  #found(entry: Entry, content: Stored | Unreadable | undefined): void {
    if (content) this.adopt(entry, content)
    else this.#options.gone(entry)
  }
}
