/** ZooKeeper backends with what no URI can ask for, under a board or bare. */
import { JobBoard } from '../../../../src/board/api/job-board.ts'
import { ZooKeeperBackend } from '../../../../src/board/backends/zookeeper/backend.ts'
import { ZooKeeperLayout } from '../../../../src/board/backends/zookeeper/store/layout.ts'
import type { ZooKeeperBackendOptions } from '../../../../src/board/backends/zookeeper/store/options.ts'
import type { BackendSink, BoardChange } from '../../../../src/board/contract/index.ts'
import { boardInternals } from '../../../../src/board/internal.ts'
import { makePosting, type PostOptions } from '../../../../src/board/model/posting/post-options.ts'
import type { Posting } from '../../../../src/board/model/posting/posting.ts'
import type { ZooKeeperPlace } from '../../boards.ts'

export type BackendOptions = Partial<Omit<ZooKeeperBackendOptions, 'layout' | 'uri'>>

function backendAt({ path, uri }: ZooKeeperPlace, options: BackendOptions): ZooKeeperBackend {
  const hosts = uri.slice('zookeeper://'.length, -path.length)
  return new ZooKeeperBackend({ uri, hosts, layout: new ZooKeeperLayout(path), ...options })
}

/** A board whose backend has these options. */
export async function boardAt(
  place: ZooKeeperPlace,
  options: BackendOptions & { readonly who?: string } = {},
): Promise<JobBoard> {
  const { who, ...rest } = options
  const board = new JobBoard(backendAt(place, rest), who === undefined ? {} : { who })
  await boardInternals(board).open()
  await board.view()
  return board
}

/** A backend without a board: what is asked of it is not chosen by anybody who knows better. */
export class BareBackend implements AsyncDisposable {
  readonly backend: ZooKeeperBackend
  readonly changes: BoardChange[] = []
  /** How often it was told to list the board, which it does, as a board would. */
  gaps = 0
  readonly #pauses = new Set<(paused: boolean) => void>()

  private constructor(backend: ZooKeeperBackend) {
    this.backend = backend
  }

  static async open(place: ZooKeeperPlace, options: BackendOptions = {}): Promise<BareBackend> {
    const bare = new BareBackend(backendAt(place, options))
    const onError = (error: Error) => {
      throw error
    }
    await bare.backend.session.open(bare.#sink(onError), { signal: new AbortController().signal })
    await bare.backend.changes.subscribe()
    return bare
  }

  /** Opens a backend that reports no changes yet. Errors of its background work are ignored. */
  static async openUnsubscribed(place: ZooKeeperPlace, options: BackendOptions = {}): Promise<BareBackend> {
    const bare = new BareBackend(backendAt(place, options))
    await bare.backend.session.open(
      bare.#sink(() => undefined),
      { signal: new AbortController().signal },
    )
    return bare
  }

  /** Resolves when it has seen the board paused, or resumed. */
  sees(wanted: { readonly paused: boolean }): Promise<void> {
    return new Promise((resolve) => {
      this.#pauses.add((paused) => paused === wanted.paused && resolve())
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.backend.session.close()
  }

  #sink(onError: (error: Error) => void): BackendSink {
    return {
      changes: (batch) => this.changes.push(...batch),
      followed: () => undefined,
      records: () => undefined,
      batchChanged: () => undefined,
      gap: () => {
        this.gaps += 1
        this.backend.jobs.list().catch(() => undefined)
      },
      paused: (paused) => {
        for (const tell of this.#pauses) tell(paused)
      },
      session: () => undefined,
      jobCount: () => undefined,
      doomed: () => undefined,
      mayExist: () => true,
      health: () => undefined,
      error: onError,
    }
  }
}

export function postingOf(options: PostOptions = {}): Posting {
  return makePosting({ name: 'job', details: {}, ...options })
}
