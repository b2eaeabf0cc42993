/**
 * The place for suspects in this process. A job whose last two owners died may end this process, too, so a process runs one suspect at a
 * time. The boards of a conductor share a place, because a crash ends the jobs of all of them.
 *
 * - A suspect whose cancellation was requested needs no place: its flow is not run, and a claim is the only way to its end.
 * - A suspect gives up its place after {@link PLACE_MS}. It goes on, and the next suspect may run beside it: otherwise a suspect that hangs
 *   would keep all other suspects, and the jobs that wait for them, from running for ever.
 */
import { type AlarmClock, alarmInBackground } from '../../core/time.ts'
import { isSuspect } from '../model/attempts.ts'
import type { JobEntry } from '../model/entry.ts'
import type { Posting } from '../model/posting/posting.ts'

/** The longest time for which a suspect keeps others from running. A job that crashes its process seldom runs that long before the crash. */
const PLACE_MS = 600_000

/** A suspect that has a place. */
export interface SuspectHolder {
  readonly uuid: string
  /** The URI of its board. */
  readonly board: string
  /** The time at which it was chosen, in milliseconds since 1970. */
  readonly since: number
}

/** Returns whether the job needs the place for suspects of its process. */
export function needsSuspectPlace(
  posting: Pick<Posting, 'attempts'>,
  { isCancelled }: { readonly isCancelled: boolean },
): boolean {
  return !isCancelled && isSuspect(posting)
}

/** The place for suspects of one process. */
export class SuspectPlace {
  readonly #holders = new Map<JobEntry, { readonly holder: SuspectHolder; readonly alarm: Disposable }>()
  readonly #listeners = new Set<() => void>()
  /** The suspects that could not be claimed since the place was last given up; some may have left since. */
  readonly #waiting = new Set<JobEntry>()

  /** Whether a suspect may be claimed now. */
  get isFree(): boolean {
    return this.#holders.size === 0
  }

  /** The suspect that has the place. */
  get holder(): SuspectHolder | undefined {
    return this.#holders.values().next().value?.holder
  }

  /** Whether another suspect still waits because the place is taken: it has not left its board, and is neither claimed nor to be cancelled. */
  get othersWait(): boolean {
    for (const entry of this.#waiting) {
      const { queuePlace, claimed, ended, cancelRequested } = entry
      if (queuePlace && !claimed && !ended && !cancelRequested) return true
      this.#waiting.delete(entry)
    }
    return false
  }

  /** Calls the listener whenever the place is taken or given up. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  /** Takes the place until {@link free}. A job that was claimed by name takes it also beside another suspect. */
  take(
    entry: JobEntry,
    { uuid, board, clock }: { readonly uuid: string; readonly board: string; readonly clock: AlarmClock },
  ): void {
    if (this.#holders.has(entry)) return
    const alarm = alarmInBackground(clock, PLACE_MS, () => this.free(entry))
    this.#holders.set(entry, { holder: { uuid, board, since: clock.now() }, alarm })
    this.#notify()
  }

  /** Frees the place of the job, if it has one. */
  free(entry: JobEntry): void {
    const held = this.#holders.get(entry)
    if (!held) return
    held.alarm[Symbol.dispose]()
    this.#holders.delete(entry)
    this.#waiting.clear()
    this.#notify()
  }

  /** Notes that a suspect could not be claimed because the place is taken. */
  noteWaiting(entry: JobEntry): void {
    if (this.isFree) return
    const isNews = this.#waiting.size === 0
    this.#waiting.add(entry)
    if (isNews) this.#notify()
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}
