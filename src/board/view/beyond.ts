/** For those who want jobs that the window does not show: it is made to show them. */
import type { Entry } from '../entry.ts'
import { type ViewWindow, wantsAny } from './window.ts'

export interface BeyondOptions {
  /** Absent where a view shows the whole board. */
  readonly window: ViewWindow | undefined
  /** Brings the job into the view, and has its posting read. */
  readonly meet: (id: string) => void
  /** Resolves when everything was read that was asked for. */
  readonly settled: (options: { signal?: AbortSignal | undefined }) => Promise<void>
  readonly current: () => boolean
  readonly reading: () => boolean
  readonly signal: AbortSignal
}

export class Beyond {
  readonly #options: BeyondOptions

  constructor(options: BeyondOptions) {
    this.#options = options
  }

  /**
   * Until it is disposed the job is in the view; where it wants resources, everything before it is, too. Of a job that was
   * outside it takes a round trip or two, and one for each stretch of the board before it.
   */
  async hold(entry: Entry): Promise<Disposable> {
    const { window, meet, settled, signal } = this.#options
    if (!window || entry.ended || entry.id === undefined) return { [Symbol.dispose]: () => undefined }
    const held = window.hold(entry)
    try {
      if (entry.standing === 'outside') {
        meet(entry.id)
        await settled({ signal })
      }
      if (entry.standing !== 'beyond' || !wantsAny(entry)) return held
      await window.reach(entry)
      await settled({ signal })
      return held
    } catch (error) {
      held[Symbol.dispose]()
      throw error
    }
  }

  /** Whether somebody wants more jobs at once than the window is made for, and there are more. */
  isShortFor(jobs: number): boolean {
    return this.#options.current() && this.#options.window?.isShortFor(jobs) === true
  }

  /** For who finds nothing to claim in the view. False where there is nothing more of the board, or it cannot be read now. */
  async readOn(options: { signal?: AbortSignal | undefined } = {}): Promise<boolean> {
    const { window, settled, current, reading } = this.#options
    if (!window || window.complete || !current()) return false
    const more = reading() || (await window.more())
    if (more) await settled(options)
    return more
  }
}
