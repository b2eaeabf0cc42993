/** The claim of a flow that runs in the foreground: none, or the claim of a job on a board, which is settled at the end. */
import { type Claim, type JobBoard, openBoard, type PostAndClaimOptions } from '../../board/index.ts'
import { boardId, boardInternals } from '../../board/internal.ts'
import { ClaimLost, InvalidArgument } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { defined } from '../../core/options.ts'
import { newUuid } from '../../core/uuid.ts'
import type { Ending, EngineOptions } from '../../engine/index.ts'
import type { AnyFlow } from '../../flow/index.ts'
import type { BookRequest, Persistence } from '../../persistence/index.ts'
import { KnownFlows } from '../claiming/known-flows.ts'
import { toBookRequest } from './book-owner.ts'
import type { Verdict } from './decide.ts'
import { dependenciesOf } from './dependencies.ts'
import { type DisclosureOptions, DisclosurePolicy } from './disclosure.ts'
import { keptOf, toKeptResults } from './kept-results.ts'
import { toRunningJob } from './running-job.ts'
import { settle } from './settle.ts'

export interface ForegroundRun extends AsyncDisposable {
  /** The UUID of the flow in the logbook. */
  readonly uuid: string
  readonly book: BookRequest
  readonly run: number
  /** The timeout of the board's session, in milliseconds; undefined without a board. */
  readonly sessionTimeout: number | undefined
  /** Returns for how many milliseconds the claim is certainly held. */
  readonly sessionLeft: () => number
  readonly engine: Pick<EngineOptions, 'signals' | 'assertOwner' | 'context' | 'clock'>
  settle(ending: Ending): Promise<void>
  /** Takes the job from the board, because nothing of it was begun. An error is not thrown: the caller has one already. */
  withdraw(): Promise<void>
}

export function runWithoutBoard({ name }: AnyFlow): ForegroundRun {
  const uuid = newUuid()
  const nothing = async () => undefined
  return {
    uuid,
    book: { uuid, name },
    run: 1,
    sessionTimeout: undefined,
    sessionLeft: () => Number.POSITIVE_INFINITY,
    engine: {},
    settle: nothing,
    withdraw: nothing,
    [Symbol.asyncDispose]: nothing,
  }
}

interface ForegroundRunOptions {
  readonly job?: PostAndClaimOptions
  readonly limits?: boolean
  readonly signal?: AbortSignal
  readonly log?: Logger
  readonly redact?: DisclosureOptions['redact']
  readonly failuresOnBoard?: DisclosureOptions['failuresOnBoard']
}

/** Returns the options of the job. It keeps no limit unless the caller asks for it, because a caller waits for the job. @throws InvalidArgument */
function withLimits({ job = {}, limits = false }: ForegroundRunOptions): PostAndClaimOptions {
  if (typeof limits !== 'boolean')
    throw new InvalidArgument('runFlow: limits must be true or false; name keys in job.limits')
  if (!limits && job.limits !== undefined && job.limits !== 'none')
    throw new InvalidArgument('runFlow: job.limits names keys, which are kept only with limits: true')
  return limits ? job : { ...job, limits: 'none' }
}

/** Posts and claims the job; waits until it is its turn. */
export async function runOnBoard(
  uriOrBoard: string | JobBoard,
  what: { flow: AnyFlow; store: object; options: ForegroundRunOptions; persistence: Persistence },
): Promise<ForegroundRun> {
  const { flow, store, options, persistence } = what
  const { signal, log, redact, failuresOnBoard } = options
  const limited = withLimits(options)
  const disclosure = new DisclosurePolicy({ redact, failuresOnBoard, encrypted: persistence.encrypts === true })
  if (typeof uriOrBoard !== 'string' && typeof Object(uriOrBoard).postAndClaim !== 'function')
    throw new InvalidArgument('runFlow: board must be a URI such as zookeeper://127.0.0.1:2181/demo, or an open board')
  const board = typeof uriOrBoard === 'string' ? await openBoard(uriOrBoard, defined({ log, signal })) : uriOrBoard
  const close = async () => {
    if (board !== uriOrBoard) await board.close()
  }
  let claim: Claim
  try {
    claim = await board.postAndClaim(flow, store, { ...limited, ...defined({ signal }) })
  } catch (error) {
    await close()
    throw error
  }
  const { job, run, fence } = claim
  const kept = () => {
    const { resultTtl } = claim.postingWithSettings
    return keptOf(flow, { rules: boardInternals(board).flowRules, resultTtl })
  }
  return {
    uuid: job.uuid,
    book: toBookRequest(job.book, { boardId: boardId(board.uri), flow: kept() }),
    run,
    sessionTimeout: board.sessionTimeout,
    sessionLeft: () => boardInternals(board).sessionLeft,
    engine: {
      signals: { stop: claim.lost, cancel: claim.cancelled },
      assertOwner: () => claim.assertHeld(),
      context: {
        fence,
        job: toRunningJob(job),
        limits: board.limits.isSupported ? board.limits : undefined,
        dependencies: dependenciesOf(job, {
          readEnds: (request) => boardInternals(board).readEnds(request),
          persistence,
          flows: new KnownFlows([flow]),
        }),
      },
      clock: boardInternals(board).clock,
    },
    settle: async (ending) => {
      const leave = AbortSignal.abort()
      const place = { book: job.book.uuid, flow: job.uuid }
      const results =
        ending.state === 'SUCCESS' && boardInternals(board).keepsHistory
          ? toKeptResults(kept(), { results: ending.results, place, persistence })
          : undefined
      const verdict = toVerdict(ending, { disclosure, kept: results })
      const settled = await settle(claim, verdict, { onError: () => undefined, leave, disclosure })
      if (settled !== 'lost') return
      claim.lost.throwIfAborted()
      throw new ClaimLost(`${job}: the claim is over; another owner may have the job`)
    },
    withdraw: () => claim.consumeWith(undefined).catch(() => undefined),
    [Symbol.asyncDispose]: async () => {
      await claim[Symbol.asyncDispose]()
      await close()
    },
  }
}

/**
 * Decides as for any job, except that a job which failed and was reverted is not tried again: its caller receives the
 * error.
 */
function toVerdict(
  { state, failures, revertFailures }: Ending,
  { disclosure, kept }: { readonly disclosure: DisclosurePolicy; readonly kept: Uint8Array | undefined },
): Verdict {
  const ending = { kind: 'flow', state, failures, revertFailures, ...defined({ results: kept }) } as const
  const verdict = disclosure.decide(ending, { onFailure: 'retry' })
  return verdict.settle === 'fail' ? { settle: 'consume' } : verdict
}
