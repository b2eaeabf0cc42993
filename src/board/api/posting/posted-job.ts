/** A job as `post` returns it: the job, and whether this post has created it. */
import { defined } from '../../../core/options.ts'
import type { ExpectedPost } from '../../jobs/expected-post.ts'
import { Job } from '../../jobs/job.ts'
import type { JobEntry } from '../../model/entry.ts'
import type { KeyTakenReason } from '../../model/key.ts'
import type { Posting } from '../../model/posting/posting.ts'
import type { TakenJob } from './taken-key.ts'

/** A job as `post` returns it. */
export class PostedJob extends Job {
  /** Whether the job was posted; false where this is an existing job with the same key. */
  readonly created: boolean
  /**
   * Why the job was not posted, where `created` is false. `waiting`: the job with the key waits, and nobody has started it. `running`: it
   * runs, or has run and waits for its next attempt; with `on: 'replace'` also where it is cancelled, or its poster claims it itself.
   * `window`: it has left the board, and the window of its key is not over; then only its uuid, its name and its state are certain.
   */
  readonly because: KeyTakenReason | undefined
  /** Whether this post has replaced the posting of the job, as `on: 'replace'` asks. */
  readonly replaced: boolean
  readonly #expected: ExpectedPost | undefined

  /**
   * @internal
   * @param options.taken for a job that was there before
   * @param options.expected for a job that is posted in a transaction which is still open
   */
  constructor(entry: JobEntry, options: { posting: Posting; taken?: TakenJob['taken']; expected?: ExpectedPost }) {
    super(entry, options.posting)
    this.created = options.taken === undefined
    this.because = options.taken?.because
    this.replaced = options.taken?.replaced === true
    this.isFollowed()
    this.#expected = options.expected
  }

  override toJSON(): Readonly<Record<string, unknown>> {
    const { created, because, replaced } = this
    return { ...super.toJSON(), created, ...defined({ because }), replaced }
  }

  protected override get expectedPost(): ExpectedPost | undefined {
    return this.#expected
  }

  protected override touch(): void {
    if (this.#expected?.isKnown !== false) super.touch()
    // A transaction that is open or rolled back leaves the job as it is known: UNCLAIMED.
    else this.#expected.look().catch(() => undefined)
  }
}
