/**
 * The lanes of the boards of a conductor, and the right to run a suspect: a job whose owners died may end this process, too, so a process
 * runs one suspect at a time, of whichever board. Within one board, the board sees to that by itself.
 */
import type { Posting } from '../../board/index.ts'
import { isSuspect } from '../../board/internal.ts'
import type { Condition } from '../../core/async/abort.ts'

/** A job that was claimed: what a `Claim` has. */
export interface ClaimedJob {
  readonly posting: Posting
  readonly job: { readonly uuid: string }
}

/** The share of one board in the slots. */
export interface Lane {
  readonly weight: number
  /** Notified when an idle board is to be asked again, although nothing has changed there. */
  readonly wake: Condition
  state: 'out' | 'ready' | 'asking' | 'idle'
  /** The number of slots that are reserved for the claims under way. */
  reserved: number
  /** The jobs that it has claimed, divided by its weight. */
  pass: number
  /** The connection to the board: `away` for a while, or `lost` with the session. */
  connection: 'there' | 'away' | 'lost'
  /** Whether nothing was left to claim when the board was asked last, after its queue was refreshed. */
  isExhausted: boolean
  /** Whether a suspect of the board was not accepted, because another suspect runs. */
  isHeldBack: boolean
  /** The uuids of the suspects of this board that run. */
  readonly suspects: Set<string>
}

/** The right to run a suspect, which one lane has at a time: from the search for jobs until the suspect that was claimed has ended. */
export class SuspectRight {
  readonly #lanes: readonly Lane[]
  #holder: Lane | undefined

  /** @param lanes the lanes of the conductor; more may be added */
  constructor(lanes: readonly Lane[]) {
    this.#lanes = lanes
  }

  /** Returns whether the board may claim the job. A board that is being asked, and may claim a suspect, gets the right to it. */
  accepts(lane: Lane, posting: Posting): boolean {
    if (this.#lanes.length === 1 || !isSuspect(posting)) return true
    const isFree = this.#holder === undefined || this.#holder === lane
    if (!isFree || lane.suspects.size > 0) {
      lane.isHeldBack = true
      return false
    }
    if (lane.state === 'asking') this.#holder = lane
    return true
  }

  /** Returns whether a granted job may run beside the suspects that run. */
  permits(lane: Lane, claim: Pick<ClaimedJob, 'posting'>): boolean {
    return !this.#concerns(claim) || this.#holder === undefined || this.#holder === lane
  }

  /** Notes that a job begins to run. */
  begin(lane: Lane, claim: ClaimedJob): void {
    if (!this.#concerns(claim)) return
    lane.suspects.add(claim.job.uuid)
    this.#holder = lane
  }

  /** Notes that a job has ended. */
  end(lane: Lane, uuid: string): void {
    lane.suspects.delete(uuid)
    this.release()
  }

  /** Releases the right if its lane does not need it any more, and wakes the lanes that were refused. */
  release(): void {
    const lane = this.#holder
    if (!lane || lane.suspects.size > 0 || lane.state === 'asking') return
    this.#holder = undefined
    for (const each of this.#lanes) {
      if (!each.isHeldBack) continue
      each.isHeldBack = false
      each.wake.notify()
    }
  }

  /** Returns whether several boards have to agree, because the job was a suspect before this claim. */
  #concerns({ posting }: Pick<ClaimedJob, 'posting'>): boolean {
    return this.#lanes.length > 1 && isSuspect({ attempts: posting.attempts.slice(0, -1) })
  }
}
