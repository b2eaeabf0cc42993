/** Starts conductors inside a process of the application. */
import type { JobBoard } from '../board/index.ts'
import { boardInternals } from '../board/internal.ts'
import { openOrAbort, rejectOnAbort } from '../core/async/abort.ts'
import type { Logger } from '../core/log.ts'
import { defined } from '../core/options.ts'
import { detached } from '../core/tracing.ts'
import type { AnyFlow } from '../flow/index.ts'
import { openPersistence, type Persistence } from '../persistence/index.ts'
import { toBoardEntries } from './boards/board-entries.ts'
import { BoardSource, openBoards } from './boards/board-source.ts'
import { KnownFlows } from './claiming/known-flows.ts'
import { Conductor } from './conductor.ts'
import type { IsolatedAtoms } from './isolation/isolated-atoms.ts'
import { type OpenPoolOptions, openPool } from './isolation/open-pool.ts'
import { type ConductorOptions, type ConductorSettings, conductorSettings } from './options.ts'
import { openServices, type ServicesFor } from './services/open.ts'

/**
 * Starts a conductor. Resolves when it has registered itself and claims jobs. The conductor keeps the process alive
 * until it is stopped.
 *
 * @throws InvalidArgument for invalid options; the errors of opening a board or logbooks; of several boards, NotConnected when none of them
 * can be reached
 * @example await using conductor = await startConductor({ board, persistence: 'directory:./logbooks', flows: [hello] })
 */
export async function startConductor<const F extends readonly AnyFlow[]>(
  options: ConductorOptions & { readonly flows: F } & ServicesFor<F>,
): Promise<Conductor> {
  const settings = conductorSettings(options)
  // Its loops run outside of the span that may be active here.
  return detached(settings.telemetry?.tracer, () => start(options, settings))
}

async function start(
  options: ConductorOptions,
  { onError: errorHandlers = [], ...settings }: ConductorSettings,
): Promise<Conductor> {
  const entries = toBoardEntries(options)
  const flows = new KnownFlows(options.flows)
  const owned: AsyncDisposable[] = []
  const { signal } = options
  const { log, telemetry } = settings
  try {
    signal?.throwIfAborted()
    const common = await openLogbooks(options.persistence, options, { log, owned })
    const sources: BoardSource[] = []
    for (const entry of entries) {
      const { persistence: place } = entry
      const persistence = place === undefined ? common : await openLogbooks(place, options, { log, owned })
      sources.push(new BoardSource({ entry, persistence, log, who: options.name, telemetry }))
    }
    owned.unshift(...sources)
    await openBoards(sources, signal)
    const open = sources.flatMap(({ board }) => board ?? [])
    for (const board of open) warnOfLostResults(options.flows, { board, log })
    const onError = (error: unknown) => log.warn({ err: error }, 'a service could not be disposed of')
    const services = await openOrAbort(signal, openServices(options.services, { onError, signal }))
    owned.unshift(services)
    const name = options.name ?? nextName(open[0]?.who ?? '')
    let conductor: Conductor | undefined
    const isolator = await openOrAbort(
      signal,
      openConductorPool(options, {
        ...{ log, sessionTimeout: shortestSessionTimeout(sources) },
        // Each board says it of its own claims.
        sessionLeft: () => Number.POSITIVE_INFINITY,
        onEvent: (event) => conductor?.onPoolEvent(event),
        onRoom: () => conductor?.recheck(),
        onCodeChanged: (error) => conductor?.onCodeChanged(error),
      }),
    )
    if (isolator.atoms) owned.unshift(isolator)
    conductor = new Conductor({
      ...settings,
      ...{ name, sources, flows, services, errorHandlers: [errorHandlers].flat(), owned },
      isolator: isolator.atoms,
      isolates: options.pool !== false,
    })
    signal?.throwIfAborted()
    await conductor.start({ signal })
    return conductor
  } catch (error) {
    for (const opened of owned) await opened[Symbol.asyncDispose]()
    throw error
  }
}

/** The timeout in milliseconds that is assumed for a board that is not open yet. */
const USUAL_SESSION_TIMEOUT_MS = 10_000

/** Returns the shortest timeout of a session in milliseconds; undefined if the sessions of all boards last as long as the process. */
function shortestSessionTimeout(sources: readonly BoardSource[]): number | undefined {
  const timeouts = sources.flatMap(({ board }) => (board ? (board.sessionTimeout ?? []) : USUAL_SESSION_TIMEOUT_MS))
  return timeouts.length === 0 ? undefined : Math.min(...timeouts)
}

function warnOfLostResults(
  flows: readonly AnyFlow[],
  { board, log }: { readonly board: JobBoard; readonly log: Logger },
): void {
  const keeping = flows.filter(({ keepResults }) => keepResults).map(({ name }) => name)
  if (keeping.length === 0 || boardInternals(board).keepsHistory) return
  log.warn(
    { board: board.uri, flows: keeping },
    'these flows have keepResults, and the board keeps no history: their results are in the logbooks only',
  )
}

async function openLogbooks(
  place: string | Persistence,
  { codec, signal }: ConductorOptions,
  { log, owned }: { readonly log: Logger; readonly owned: AsyncDisposable[] },
): Promise<Persistence> {
  const rest = defined({ codec })
  // A persistence that was passed in open is not closed.
  if (typeof place !== 'string') return rejectOnAbort(openPersistence(place, rest), signal)
  const opened = await openOrAbort(signal, openPersistence(place, { log, ...rest }))
  owned.unshift(opened)
  return opened
}

async function openConductorPool(
  { flows, pool }: ConductorOptions,
  rest: Omit<OpenPoolOptions, 'flows' | 'pool'>,
): Promise<AsyncDisposable & { readonly atoms: IsolatedAtoms | undefined }> {
  const atoms = await openPool({ flows, pool, ...rest })
  return { atoms, [Symbol.asyncDispose]: async () => atoms?.[Symbol.asyncDispose]() }
}

/** The number of conductors of this process that were named automatically. */
let autoNamedCount = 0

function nextName(who: string): string {
  autoNamedCount += 1
  return autoNamedCount === 1 ? who : `${who}/${autoNamedCount}`
}
