/**
 * Functions of the application that a conductor calls: before it claims, and when jobs end or children start.
 *
 * | hook | called | if it throws |
 * |---|---|---|
 * | `beforeClaim` | before the first claim, one after the other; with `once`, by one conductor while the others wait | the conductor does not start |
 * | `settled`, `failed`, `childStarted` | when that has happened; nothing waits for it | the error is logged, and emitted as `error` |
 */
import type { JobBoard } from '../board/index.ts'
import { boardInternals } from '../board/internal.ts'
import { abortAfter, followSignals, rejectOnAbort } from '../core/async/abort.ts'
import { InvalidArgument, Timeout } from '../core/errors.ts'
import type { Emitter } from '../core/events.ts'
import { toUserError } from '../core/failure.ts'
import type { Logger } from '../core/log.ts'
import { assertOptions } from '../core/options.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import type { ChildStartedEvent, ConductorEvents } from './events.ts'
import type { RunSettled } from './runs/runs.ts'

/** The argument of a `beforeClaim` hook. */
export interface BeforeClaimContext {
  readonly board: JobBoard
  /** The name of the conductor. */
  readonly conductor: string
  readonly log: Logger
  /** Fires when the conductor is stopped, when the time limit is over, and, with `once`, when the session is lost. */
  readonly signal: AbortSignal
}

/** A hook that is run before a conductor claims. */
export interface BeforeClaimHook {
  /** The name, for messages; with `once`, unique on the board. */
  readonly name: string
  readonly run: (context: BeforeClaimContext) => unknown
  /**
   * `board`: run by one conductor, once for ever. `release`: once for each release, which the option `release` names. Other conductors wait until
   * it is done. If the conductor that runs it dies, another runs it again: it must be idempotent. By default every conductor runs it.
   */
  readonly once?: 'board' | 'release'
  /** The time limit; ten minutes by default. */
  readonly timeout?: Duration
}

/** The hooks of a conductor, as the option `hooks` has them, and the export `hooks` of a flows module. */
export interface ConductorHooks {
  readonly beforeClaim?:
    | BeforeClaimHook['run']
    | BeforeClaimHook
    | readonly (BeforeClaimHook['run'] | BeforeClaimHook)[]
  /** Called when a job was settled, however it ended. */
  readonly settled?: (event: RunSettled) => unknown
  /** Called when a job was settled that has failed. */
  readonly failed?: (event: RunSettled) => unknown
  /** Called when a child process for isolated tasks is ready. */
  readonly childStarted?: (event: ChildStartedEvent) => unknown
}

const DEFAULT_TIMEOUT = '10m'

/** Checks the option `hooks`. @throws InvalidArgument naming the invalid hook */
export function assertHooks(
  hooks: ConductorHooks | undefined,
  { release }: { readonly release?: string | undefined },
): void {
  if (hooks === undefined) return
  assertNames(hooks)
  const names = new Set<string>()
  for (const hook of toGiven(hooks)) {
    if (typeof hook === 'function') continue
    const { name, run, once, timeout = DEFAULT_TIMEOUT }: Partial<BeforeClaimHook> = Object(hook)
    if (typeof name !== 'string' || name === '' || typeof run !== 'function')
      throw new InvalidArgument('hooks: beforeClaim must be a function, { name, run }, or a list of these')
    // With a misspelt `once` each conductor would run it.
    assertOptions<BeforeClaimHook>(hook, { name: true, run: true, once: true, timeout: true }, `hooks: ${name}`)
    if (once !== undefined && once !== 'board' && once !== 'release')
      throw new InvalidArgument(`hooks: once of ${name} must be 'board' or 'release'`)
    if (once === 'release' && release === undefined)
      throw new InvalidArgument(
        `hooks: ${name} is run once for each release: name it with the option release, as in release: '2.1'`,
      )
    if (names.has(name)) throw new InvalidArgument(`hooks: two beforeClaim hooks have the name ${name}`)
    names.add(name)
    toMilliseconds(timeout, `hooks: timeout of ${name}`)
  }
}

/** Checks which hooks there are. @throws InvalidArgument for an unknown hook, and for a hook that is not a function */
function assertNames(hooks: ConductorHooks): void {
  const known = { beforeClaim: true, settled: true, failed: true, childStarted: true } as const
  assertOptions<ConductorHooks>(hooks, known, 'hooks')
  for (const name of ['settled', 'failed', 'childStarted'] as const) {
    if (hooks[name] !== undefined && typeof hooks[name] !== 'function')
      throw new InvalidArgument(`hooks: ${name} must be a function`)
  }
}

type GivenHook = BeforeClaimHook['run'] | BeforeClaimHook

function toGiven({ beforeClaim = [] }: ConductorHooks): readonly GivenHook[] {
  // For the compiler, `Array.isArray` does not distinguish a readonly list from its elements.
  return Array.isArray(beforeClaim) ? beforeClaim : [beforeClaim as GivenHook]
}

function toBeforeClaim(hooks: ConductorHooks): readonly BeforeClaimHook[] {
  return toGiven(hooks).map((hook, index) =>
    typeof hook === 'function' ? { name: hook.name === '' ? `beforeClaim ${index + 1}` : hook.name, run: hook } : hook,
  )
}

export interface BeforeClaimOptions extends Omit<BeforeClaimContext, 'signal'> {
  readonly release: string | undefined
  /** Fires when the conductor is stopped. */
  readonly signal: AbortSignal
}

/** Runs the `beforeClaim` hooks one after the other. @throws the error of the first that fails; the reason of the signal */
export async function runBeforeClaim(hooks: ConductorHooks, options: BeforeClaimOptions): Promise<void> {
  for (const hook of toBeforeClaim(hooks)) await runHook(hook, options)
}

async function runHook(
  { name, run, once, timeout = DEFAULT_TIMEOUT }: BeforeClaimHook,
  options: BeforeClaimOptions,
): Promise<void> {
  const { board, conductor, log, release, signal } = options
  using stop = followSignals([signal])
  const late = (time: string) => new Timeout(`hook ${name} was not done within ${time}; the conductor does not claim`)
  using _limit = abortAfter(stop, timeout, late)
  const call = async (runSignal: AbortSignal) => {
    log.info({ hook: name }, `hook ${name} runs`)
    const running = (async () => run({ board, conductor, log, signal: runSignal }))().catch((error: unknown) => {
      throw toUserError(error, `hook ${name}`)
    })
    await rejectOnAbort(running, runSignal)
  }
  if (once === undefined) return await call(stop.signal)
  const id = once === 'board' ? name : `${name}@${release}`
  const outcome = await rejectOnAbort(boardInternals(board).runOnce({ id, work: call, signal: stop.signal }), stop)
  if (outcome === 'done') log.info({ hook: name }, `hook ${name} was run before`)
}

/** Calls the hooks about jobs and children. Their errors are emitted as `error` of the conductor. */
export function subscribeHooks(
  { settled, failed, childStarted }: ConductorHooks,
  { events, onError }: { readonly events: Emitter<ConductorEvents>; readonly onError: (error: unknown) => void },
): void {
  const call = async <T>(hook: ((event: T) => unknown) | undefined, event: T) => hook?.(event)
  if (settled ?? failed) {
    events.on('settled', (event) => {
      call(settled, event).catch(onError)
      if (event.failure) call(failed, event).catch(onError)
    })
  }
  if (childStarted) events.on('childStarted', (event) => void call(childStarted, event).catch(onError))
}

/**
 * Merges the hooks of several modules: `beforeClaim` hooks run in the order of the modules, the others are called one after the other. Hooks
 * that several modules export are called once.
 *
 * @throws InvalidArgument for an unknown hook, and for a hook that is not a function: the merged hooks do not show it any more
 */
export function mergeHooks(hooks: readonly ConductorHooks[]): ConductorHooks {
  const all = [...new Set(hooks)]
  for (const hooks of all) assertNames(hooks)
  const each = <T>(pick: (hooks: ConductorHooks) => ((event: T) => unknown) | undefined) => {
    const picked = all.flatMap((hooks) => pick(hooks) ?? [])
    return picked.length === 0 ? undefined : (event: T) => Promise.all(picked.map(async (hook) => hook(event)))
  }
  const [settled, failed] = [each((hooks) => hooks.settled), each((hooks) => hooks.failed)]
  const childStarted = each((hooks) => hooks.childStarted)
  return {
    // Functions stay functions: several modules may give theirs the same name.
    beforeClaim: all.flatMap(toGiven),
    ...(settled && { settled }),
    ...(failed && { failed }),
    ...(childStarted && { childStarted }),
  }
}
