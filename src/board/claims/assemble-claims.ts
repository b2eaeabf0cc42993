/** Puts together what a board object claims and ends jobs with. */
import type { Backend } from '../contract/index.ts'
import type { LimitBook } from '../limits/limit-book.ts'
import type { BoardRecords } from '../records/board-records.ts'
import type { EntityRegistry } from '../records/entity-registry.ts'
import type { LiveView } from '../view/live-view.ts'
import { AcceptGuard } from './accept-guard.ts'
import { Canceller } from './cancelling.ts'
import { JobChooser } from './choosing.ts'
import { ClaimSession } from './claim-session.ts'
import { Claimer } from './claimer.ts'
import { JobClaimer } from './claiming.ts'
import { Expirer } from './expirer.ts'
import { GivenJobClaimer } from './given-job.ts'
import { HeldClaims } from './held-claims.ts'
import { Incarnation } from './incarnation.ts'
import { RejectedClaims } from './rejected-claims.ts'
import { Settler } from './settling.ts'

export interface ClaimPartsOptions {
  readonly backend: Backend
  readonly view: LiveView
  readonly entities: EntityRegistry
  readonly limits: LimitBook
  readonly records: BoardRecords
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly who: string
  /** The number of jobs that the history keeps. */
  readonly keepHistory: number
  readonly onError: (error: Error) => void
}

/** The parts of a board object that claim jobs and end them. */
export interface ClaimParts {
  /** Whether this process lives, for those who see its attempts. */
  readonly incarnation: Incarnation
  /** Whether claims can be granted now. */
  readonly session: ClaimSession
  /** The claims of this board object. */
  readonly held: HeldClaims
  /** Settles claims, and trashes unclaimed jobs. */
  readonly settler: Settler
  readonly canceller: Canceller
  /** The claims that were refused. */
  readonly rejected: RejectedClaims
  /** Claims jobs that callers name. */
  readonly givenJobs: GivenJobClaimer
  /** Moves jobs that were not started in time to the trash. */
  readonly expirer: Expirer
  /** Waits for jobs that can be claimed, and claims them. */
  readonly claimer: Claimer
}

/** Returns the parts, each made after the parts that it uses. */
export function assembleClaims(options: ClaimPartsOptions): ClaimParts {
  const { backend, view } = options
  const incarnation = new Incarnation(options)
  const session = new ClaimSession({ backend, view, incarnation })
  const held = new HeldClaims({ ...options, session })
  const settler = new Settler({ ...options, held })
  const canceller = new Canceller({ ...options, held, settler })
  const rejected = new RejectedClaims({ ...options, canClaim: () => session.canClaim })
  const acceptGuard = new AcceptGuard(options)
  const chooser = new JobChooser({ backend, view, session, held, rejected, acceptGuard })
  const claiming = new JobClaimer({
    ...options,
    ...{ session, incarnation, held, settler, canceller, chooser, rejected, acceptGuard },
  })
  const givenJobs = new GivenJobClaimer({
    ...options,
    resume: (place) => rejected.resume(place),
    claim: (place) => claiming.claim(place),
  })
  const expirer = new Expirer({
    ...options,
    incarnation,
    discard: (stored, request) => settler.discardStored(stored, request),
  })
  const claimer = new Claimer({ ...options, chooser, claiming, canceller, expirer, doomed: settler.doomed })
  return { incarnation, session, held, settler, canceller, rejected, givenJobs, expirer, claimer }
}
