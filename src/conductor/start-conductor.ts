/** Starts conductors inside a process of the application. */
import { type JobBoard, openBoard } from '../board/index.ts'
import { toDeclaredSchedules } from '../board/internal.ts'
import { openOrAbort, rejectOnAbort } from '../core/async/abort.ts'
import type { Logger } from '../core/log.ts'
import { defined } from '../core/options.ts'
import type { AnyFlow } from '../flow/index.ts'
import { openPersistence, type Persistence } from '../persistence/index.ts'
import { KnownFlows } from './claiming/known-flows.ts'
import { Conductor } from './conductor.ts'
import type { IsolatedAtoms } from './isolation/isolated-atoms.ts'
import { type OpenPoolOptions, openPool } from './isolation/open-pool.ts'
import { type ConductorOptions, conductorSettings } from './options.ts'
import { openServices, type ServicesFor } from './services/open.ts'

/**
 * Starts a conductor. Resolves when it has registered itself and claims jobs. The conductor keeps the process alive
 * until it is stopped.
 *
 * @throws InvalidArgument for invalid options; the errors of opening a board or logbooks
 * @example await using conductor = await startConductor({ board, persistence: 'directory:./logbooks', flows: [hello] })
 */
export async function startConductor<const F extends readonly AnyFlow[]>(
  options: ConductorOptions & { readonly flows: F } & ServicesFor<F>,
): Promise<Conductor> {
  const settings = conductorSettings(options)
  const schedules = options.schedules && toDeclaredSchedules(options.schedules)
  const flows = new KnownFlows(options.flows)
  const owned: AsyncDisposable[] = []
  const { signal } = options
  try {
    signal?.throwIfAborted()
    const persistence = await openLogbooks(options, settings.log)
    if (persistence !== options.persistence) owned.unshift(persistence)
    const board = await openConductorBoard(options, settings.log)
    if (board !== options.board) owned.unshift(board)
    warnOfLostResults(options.flows, { board, log: settings.log })
    const failed = (error: unknown) => settings.log.warn({ err: error }, 'a service could not be disposed of')
    const services = await openOrAbort(signal, openServices(options.services, { failed, signal }))
    owned.unshift(services)
    const name = options.name ?? nextName(board)
    let conductor: Conductor | undefined
    const isolator = await openOrAbort(
      signal,
      openConductorPool(options, {
        ...{ log: settings.log, sessionTimeout: board.sessionTimeout, sessionLeft: () => board.sessionLeft },
        onEvent: (event) => conductor?.onPoolEvent(event),
        onRoom: () => conductor?.recheck(),
        onCodeChanged: (error) => conductor?.onCodeChanged(error),
      }),
    )
    if (isolator.atoms) owned.unshift(isolator)
    conductor = new Conductor({
      name,
      board,
      persistence,
      flows,
      services,
      isolator: isolator.atoms,
      isolates: options.pool !== false,
      schedules,
      ...settings,
      owned,
    })
    signal?.throwIfAborted()
    await conductor.start({ signal })
    return conductor
  } catch (error) {
    for (const opened of owned) await opened[Symbol.asyncDispose]()
    throw error
  }
}

function warnOfLostResults(
  flows: readonly AnyFlow[],
  { board, log }: { readonly board: JobBoard; readonly log: Logger },
): void {
  const keeping = flows.filter(({ keepResults }) => keepResults).map(({ name }) => name)
  if (keeping.length === 0 || board.keepsHistory) return
  log.warn(
    { board: board.uri, flows: keeping },
    'these flows have keepResults, and the board keeps no history: their results are in the logbooks only',
  )
}

async function openLogbooks(
  { persistence: given, codec, signal }: ConductorOptions,
  log: Logger,
): Promise<Persistence> {
  const rest = defined({ codec })
  // A persistence that was passed in open is not closed.
  return typeof given === 'string'
    ? openOrAbort(signal, openPersistence(given, { log, ...rest }))
    : rejectOnAbort(openPersistence(given, rest), signal)
}

async function openConductorBoard(options: ConductorOptions, log: Logger): Promise<JobBoard> {
  const { board, name, signal } = options
  if (typeof board !== 'string') return board
  return openBoard(board, { log, ...defined({ who: name, signal }) })
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

function nextName(board: JobBoard): string {
  autoNamedCount += 1
  return autoNamedCount === 1 ? board.who : `${board.who}/${autoNamedCount}`
}
