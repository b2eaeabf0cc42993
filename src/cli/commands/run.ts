/** The command `jobboard run`: runs one flow now, in the foreground. */
import type { Command } from 'commander'
import type { JobBoard } from '../../board/index.ts'
import type { ConductorPool, ServicesGiven } from '../../conductor/index.ts'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { describeFailure, failureOf } from '../../core/failure.ts'
import { Redactor } from '../../core/redaction.ts'
import type { AnyFlow, Flow } from '../../flow/index.ts'
import type { Persistence } from '../../persistence/index.ts'
import { failureView, redactResults } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, INTERRUPTED, type RunAction } from '../context.ts'
import { count, type FlagTable, type OptionsOf, shared, texts, withFlags } from '../input/flags.ts'
import { chooseFlow, flowsOption, loadFlowsAndServices } from '../input/flows-module.ts'
import { POOL_FLAGS, type PoolFlags, toPool } from '../input/pool-flags.ts'
import {
  checkStore,
  definedOnly,
  jsonObject,
  parseDuration,
  persistenceUri,
  readStoreText,
  redactedKeys,
  type SharedOptions,
  toResourceOptions,
} from '../input/shared-options.ts'
import { boardIsNamed, openConductorsLogbooks, openNamedBoard } from '../opening.ts'
import type { AtomLines, AtomLinesOptions } from '../output/atom-lines.ts'
import { printDrawn, printJson, reportError } from '../output/output.ts'

const FLAGS = {
  ...shared('--flows <module>', '--store <json>'),
  '--alone': 'run without a board, although one is named',
  '--exclusive <resource>': ['resource that it owns exclusively while it runs; needs a board; may be repeated', texts],
  '--shared <resource>': ['resource that it owns together with others; needs a board; may be repeated', texts],
  '--limits': 'keep the limits of its keys, as jobs of conductors do; needs a board (default: none)',
  ...shared('--name <name>', '--priority <priority>'),
  '--within <duration>': 'how long to wait for its turn (default: for ever)',
  '--deadline <duration>': 'how long it may run before it is reverted (default: for ever)',
  '--flow-concurrency <n>': ['how many tasks run at once (default: 16)', count()],
  ...POOL_FLAGS,
  '--quiet': 'do not print the progress',
  '--json': 'print a JSON object with state and results, or failure',
} satisfies FlagTable

type RunCommandOptions = PoolFlags & OptionsOf<typeof FLAGS>

export function defineRun(program: Command, run: RunAction): void {
  withFlags(program.command('run'), FLAGS)
    .summary('run a flow now, in the foreground')
    .description(
      'Runs FLOW in this process and prints the results of its tasks; its progress goes to standard error. If a board is ' +
        'named, the flow is a job on it, claimed by this process, which waits for its turn and owns its resources; ' +
        'without a board it owns none. Ctrl-C suspends it. The exit code is 0 when it succeeded, 1 when it failed, and 130 ' +
        'when it was suspended.',
    )
    .argument('<flow>', 'name of the flow')
    .addHelpText(
      'after',
      `\nExamples:\n  $ jobboard run hello --flows ./flows.js --store '{"name":"Ada"}'\n  $ jobboard run import --flows ./flows.js --exclusive account-42 --within 10m`,
    )
    .action(run(runFlowNow))
}

/**
 * Runs a flow.
 *
 * @throws InvalidArgument, MissingDependencies, and what board and logbooks throw, before anything runs
 */
async function runFlowNow(
  options: RunCommandOptions,
  context: CliContext,
  { args: [name = ''] }: Command,
): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  const store = jsonObject(await readStoreText(options, context), '--store', { fromStdin: options.store === '-' })
  const settings = toSettings(options)
  const onBoard = !options.alone && boardIsNamed(options, context)
  if (!onBoard) assertNoBoardOptions(options)
  const module = flowsOption(options, 'run')
  const loaded = await loadFlowsAndServices(module, context)
  const { flows, services } = loaded
  const flow = chooseFlow(name, flows, module)
  await checkStore(flow, store)
  await using persistence = await openRunLogbooks(options, context)
  await using opened = onBoard ? await openNamedBoard(options, context) : undefined
  using interruption = context.listenForInterruption()
  const lines = await openAtomLines({ context, flow, redaction, quiet: options.quiet === true })
  const { signal } = interruption
  const redact = redactedKeys(options, context)
  const running = {
    ...{ flow, store, lines, persistence, services, signal, settings, redact },
    pool: { ...toPool(options, loaded), output: 'stderr' as const },
    ...(opened ? { board: opened.board } : {}),
  }
  try {
    const results = redactResults(await execute(running), redaction)
    if (options.json) await printJson(context, [{ flow: flow.name, version: flow.version, state: 'SUCCESS', results }])
    else await printDrawn(context, ({ resultLines }) => resultLines(results))
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
  readonly pool: ConductorPool
  readonly board?: JobBoard
  readonly signal: AbortSignal
  readonly settings: ReturnType<typeof toSettings>
  readonly redact: readonly string[]
}

async function openAtomLines(options: AtomLinesOptions): Promise<AtomLines> {
  const { AtomLines } = await import('../output/atom-lines.ts')
  return new AtomLines(options)
}

/** Runs in a separate function: TypeScript 6.0 does not rewrite the `.ts` of an import() beside an `await using`. */
async function execute(running: RunParameters): Promise<object> {
  const { flow, store, lines, persistence, services, pool, board, signal, settings, redact } = running
  const { runFlow } = await import('../../conductor/index.ts')
  const { watchPersistence } = await import('../output/atom-lines.ts')
  const { job, ...rest } = settings
  const { results } = await runFlow(flow as Flow<object, object, unknown>, store, {
    persistence: watchPersistence(persistence, (transition) => lines.print(transition)),
    signal,
    redact,
    pool,
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
  const { name, priority, within, deadline, flowConcurrency, limits } = options
  return {
    ...(deadline === undefined ? {} : { deadline: parseDuration(deadline, '--deadline') }),
    ...definedOnly({ concurrency: flowConcurrency, limits }),
    job: {
      ...toResourceOptions(options),
      ...definedOnly({ name, priority }),
      ...(within === undefined ? {} : { timeout: parseDuration(within, '--within') }),
    },
  }
}

/** Checks the options. @throws InvalidArgument for an option that needs a board, if there is none */
function assertNoBoardOptions({ alone, exclusive, shared, within, priority, limits }: RunCommandOptions): void {
  const asked = Object.entries({ exclusive, shared, within, priority, limits }).find(([, value]) => value !== undefined)
  if (!asked) return
  const how = alone ? 'remove --alone' : 'name one with --board URI'
  throw new InvalidArgument(`--${asked[0]} is for a job on a board: ${how}`)
}

/** Opens the named logbooks, or logbooks in memory. */
async function openRunLogbooks(options: SharedOptions, context: CliContext): Promise<Persistence> {
  if (persistenceUri(options, context) !== undefined) return openConductorsLogbooks(options, context)
  return (await import('../../persistence/index.ts')).openPersistence('memory:')
}
