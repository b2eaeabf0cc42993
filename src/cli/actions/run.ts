/** The work of `jobboard run`: runs a flow in this process, and holds its resources if a board is named. */
import type { JobBoard, Priority } from '../../board/index.ts'
import type { ServicesGiven } from '../../conductor/index.ts'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { describeFailure, failureOf } from '../../core/failure.ts'
import { Redactor } from '../../core/redaction.ts'
import type { AnyFlow, Flow } from '../../flow/index.ts'
import type { Persistence } from '../../persistence/index.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode, FAILED, INTERRUPTED } from '../exit-codes.ts'
import { chooseFlow, flowsOption, loadFlowsAndServices } from '../input/flows-module.ts'
import { type ResourceFlags, toResourceOptions } from '../input/requested-resources.ts'
import { jsonObject, parseDuration, persistenceUri, redactedKeys, type SharedOptions } from '../input/shared-options.ts'
import { checkStore, readStoreText } from '../input/store-option.ts'
import { boardIsNamed, openConductorsLogbooks, openNamedBoard } from '../opening.ts'
import { AtomLines } from '../output/atom-lines.ts'
import { reportError } from '../output/error-report.ts'
import { printJson, printLines } from '../output/output.ts'
import { resultLines } from '../output/render/results.ts'
import { watchPersistence } from '../output/watch-logbooks.ts'
import { jsonable } from '../views/tracked-view.ts'
import { failureView } from '../views/views.ts'

export interface RunCommandOptions extends SharedOptions, ResourceFlags {
  readonly flows?: string
  readonly store?: string
  readonly alone?: boolean
  readonly name?: string
  readonly priority?: Priority
  readonly within?: string
  readonly deadline?: string
  readonly flowConcurrency?: number
  readonly quiet?: boolean
  readonly json?: boolean
}

/**
 * Runs a flow.
 *
 * @throws InvalidArgument, MissingDependencies, and what board and logbooks throw, before anything runs
 */
export async function runNow(name: string, options: RunCommandOptions, context: CliContext): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  const store = jsonObject(await readStoreText(options, context), '--store', { fromStdin: options.store === '-' })
  const settings = toSettings(options)
  const onBoard = !options.alone && boardIsNamed(options, context)
  if (!onBoard) assertNoBoardOptions(options)
  const module = flowsOption(options, 'run')
  const { flows, services } = await loadFlowsAndServices(module, context)
  const flow = chooseFlow(name, flows, module)
  checkStore(flow, store)
  await using persistence = await openRunLogbooks(options, context)
  await using opened = onBoard ? await openNamedBoard(options, context) : undefined
  using interruption = context.listenForInterruption()
  const lines = new AtomLines({ context, flow, redaction, quiet: options.quiet === true })
  const { signal } = interruption
  const redact = redactedKeys(options, context)
  const running = {
    ...{ flow, store, lines, persistence, services, signal, settings, redact },
    ...(opened ? { board: opened.board } : {}),
  }
  try {
    const results = redactResults(await execute(running), redaction)
    if (options.json) await printJson(context, [{ flow: flow.name, version: flow.version, state: 'SUCCESS', results }])
    else await printLines(context, resultLines(results))
    return DONE
  } catch (error) {
    return await explainFailure(error, { ...running, options, redaction, context })
  }
}

interface RunParameters {
  readonly flow: AnyFlow
  readonly store: object
  readonly lines: AtomLines
  readonly persistence: Persistence
  /**
   * The services of the module, or a function that makes them: `ctx.services` of its tasks. Undefined if it exports
   * none.
   */
  readonly services: unknown
  readonly board?: JobBoard
  readonly signal: AbortSignal
  readonly settings: ReturnType<typeof toSettings>
  readonly redact: readonly string[]
}

/** Runs in a function of its own: TypeScript 6.0 leaves the `.ts` of an import() as it is beside an `await using`. */
async function execute(running: RunParameters): Promise<object> {
  const { flow, store, lines, persistence, services, board, signal, settings, redact } = running
  const { runFlow } = await import('../../conductor/index.ts')
  const { job, ...rest } = settings
  const { results } = await runFlow(flow as Flow<object, object, unknown>, store, {
    persistence: watchPersistence(persistence, (transition) => lines.print(transition)),
    signal,
    redact,
    ...(services === undefined ? {} : { services: services as ServicesGiven<unknown> }),
    ...rest,
    ...(board ? { board, job } : {}),
  })
  return results
}

/**
 * Reports why a flow did not succeed, and returns the exit code: for a flow that was reverted, reports its failure.
 * Throws the error of a flow that never began, like any command.
 */
async function explainFailure(
  error: unknown,
  at: RunParameters & { options: RunCommandOptions; redaction: Redactor; context: CliContext },
): Promise<ExitCode> {
  const { flow, lines, options, redaction, context, board, signal } = at
  const { state } = lines
  if (error === context.stdout.failed.reason && context.stdout.failed.aborted) throw error
  if (signal.aborted && error === signal.reason) {
    const where = board && state !== undefined ? '; its job is on the board, and conductors go on with it' : ''
    context.stderr.write(`jobboard: interrupted: flow ${flow.name} was suspended${where}\n`)
    return INTERRUPTED
  }
  if (state === undefined) throw error
  if (options.json) {
    const failure = failureView(failureOf(error), redaction)
    await printJson(context, [{ flow: flow.name, version: flow.version, state, failure }])
  }
  const failed = new JobboardError(
    `flow ${flow.name} failed: ${describeFailure(failureView(failureOf(error), redaction))}`,
    // The stack is printed with --verbose.
    { cause: redaction.value(error) },
  )
  reportError(failed, context, { verbose: options.verbose === true })
  return FAILED
}

function toSettings(options: RunCommandOptions) {
  const { name, priority, within, deadline, flowConcurrency } = options
  return {
    ...(deadline === undefined ? {} : { deadline: parseDuration(deadline, '--deadline') }),
    ...(flowConcurrency === undefined ? {} : { concurrency: flowConcurrency }),
    job: {
      ...toResourceOptions(options),
      ...(name === undefined ? {} : { name }),
      ...(priority === undefined ? {} : { priority }),
      ...(within === undefined ? {} : { timeout: parseDuration(within, '--within') }),
    },
  }
}

/** Checks the options. @throws InvalidArgument for an option that needs a board, if there is none */
function assertNoBoardOptions({ alone, exclusive, shared, within, priority }: RunCommandOptions): void {
  const asked = Object.entries({ exclusive, shared, within, priority }).find(([, value]) => value !== undefined)
  if (!asked) return
  const how = alone ? 'remove --alone' : 'name one with --board URI'
  throw new InvalidArgument(`--${asked[0]} is for a job on a board: ${how}`)
}

/** Opens the named logbooks, or logbooks in memory. */
async function openRunLogbooks(options: SharedOptions, context: CliContext): Promise<Persistence> {
  if (persistenceUri(options, context) !== undefined) return openConductorsLogbooks(options, context)
  return (await import('../../persistence/index.ts')).openPersistence('memory:')
}

function redactResults(results: object, redaction: Redactor): Record<string, unknown> {
  return Object.fromEntries(Object.entries(results).map(([name, value]) => [name, jsonable(redaction.value(value))]))
}
