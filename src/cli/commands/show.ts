/** The command `jobboard show`: shows one job, on the board, in the trash, or in its logbook. */
import type { Command } from 'commander'
import type { Job, JobBoard } from '../../board/index.ts'
import type { JobRecord } from '../../conductor/internal.ts'
import { InvalidArgument, NotFound } from '../../core/errors.ts'
import { parseReference } from '../../core/job-names.ts'
import { defined } from '../../core/options.ts'
import { Redactor } from '../../core/redaction.ts'
import { isFinished } from '../../core/states.ts'
import type { AnyFlow, FlowOutline } from '../../flow/index.ts'
import {
  cancellationView,
  type JobReport,
  jobView,
  logbookView,
  postingView,
  readJobSettings,
  readOpenJob,
  toJobDetails,
  trashReport,
  waitingView,
} from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../context.ts'
import { assertUuidPart, locateJob, type SearchedPlaces, unknownJobError, wholeUuid } from '../find.ts'
import type { GraphFormat } from '../input/choices.ts'
import { type FlagTable, type OptionsOf, shared, texts, withFlags } from '../input/flags.ts'
import { chooseFlow, loadFlows, type ModuleNames } from '../input/flows-module.ts'
import { redactedKeys } from '../input/shared-options.ts'
import { openLogbooks, openNamedBoard } from '../opening.ts'
import { drawAs } from '../output/drawing.ts'
import { printDrawn, printJson, printLines } from '../output/output.ts'

const FLAGS = {
  ...shared('--json'),
  '--graph': 'draw the flow instead, its atoms coloured by their states',
  '--flows <module>': [
    'with --graph, module that exports the flow: a path, a package, or auto; may be repeated (default: as conductors have it)',
    texts,
  ],
  ...shared('--format <format>'),
} satisfies FlagTable

type ShowCommandOptions = OptionsOf<typeof FLAGS>

export function defineShow(program: Command, run: RunAction): void {
  withFlags(program.command('show'), FLAGS)
    .summary('show a job and its logbook')
    .description(
      'Shows a job on the board or in the trash: its state, owner and attempts, and the names of the keys of its store. ' +
        'With --persistence also its logbook: the state of the flow and of each task. A job that is done has left the ' +
        'board; only its logbook remains.',
    )
    .argument('<uuid>', 'uuid of the job, its beginning or its end, or its reference')
    .addHelpText(
      'after',
      '\nExample:\n  $ jobboard show 0199c0de-0000-7000-8000-000000000001 --persistence directory:./logbooks',
    )
    .action(run(show))
}

async function show(
  options: ShowCommandOptions,
  context: CliContext,
  { args: [named = ''] }: Command,
): Promise<ExitCode> {
  assertUuidPart(named, 'look')
  const redaction = new Redactor(redactedKeys(options, context))
  await using logbooks = await openLogbooks(options, context)
  await using opened = await openNamedBoard(options, context, { create: false })
  const { uuid, reference } = await wholeUuid(named, { board: opened.board, logbooks })
  const report = await reportOn(reference, { board: opened.board, logbooks, redaction })
  const { board } = opened
  if (options.graph)
    await printLines(context, (await drawFlow(uuid, report, { ...options, board, context })).split('\n'))
  else if (options.json) await printJson(context, [{ uuid, ...report }])
  else await printDrawn(context, ({ reportLines }, screen) => reportLines(uuid, report, screen))
  return DONE
}

/**
 * Draws the flow of a job, in the version that the job began with if the module has it.
 *
 * @throws InvalidArgument if the module has no such flow; NotFound without a module, if no conductor has had it
 */
async function drawFlow(
  uuid: string,
  { job, logbook }: JobReport,
  { flows: module, format = 'mermaid', board, context }: DrawFlowOptions,
): Promise<string> {
  const name = logbook?.flow ?? job?.flow
  if (name === undefined) throw new InvalidArgument(`job ${uuid} names no flow; there is nothing to draw`)
  const version = logbook?.version ?? job?.version
  const flow =
    module === undefined
      ? await findOutline(board, { name, version })
      : chooseVersion(await loadFlows(module, context), { name, version, module })
  const states = Object.fromEntries((logbook?.atoms ?? []).map((atom) => [atom.name, atom.state]))
  return drawAs(format, flow, { states })
}

interface DrawFlowOptions {
  readonly flows?: ModuleNames
  readonly format?: GraphFormat
  readonly board: JobBoard
  readonly context: CliContext
}

/** Returns the flow in this version, or in its newest one. */
function chooseVersion(
  flows: readonly AnyFlow[],
  {
    name,
    version,
    module,
  }: { readonly name: string; readonly version: string | undefined; readonly module: ModuleNames },
): AnyFlow {
  return flows.find((flow) => flow.name === name && flow.version === version) ?? chooseFlow(name, flows, module)
}

/** Returns the flow as conductors have it. @throws NotFound if none has had it */
async function findOutline(
  board: JobBoard,
  { name, version }: { readonly name: string; readonly version: string | undefined },
): Promise<FlowOutline> {
  const found = (await board.flows()).filter((flow) => flow.name === name)
  const outline = found.find((flow) => flow.version === version) ?? found.at(-1)
  if (outline) return outline
  throw new NotFound(`no conductor of ${board.uri} has had flow ${name}: add --flows MODULE, which exports it`)
}

interface ShowSources extends SearchedPlaces {
  readonly redaction: Redactor
}

/** Returns the report of a job. @throws NotFound if the job is in none of the places */
async function reportOn(reference: string, sources: ShowSources): Promise<JobReport> {
  for (;;) {
    const located = await locateJob(reference, sources)
    if (!located) throw await unknownJobError(parseReference(reference).uuid, sources)
    if (located.place === 'logbook') {
      await assertOfThisBoard(located.record, sources)
      const { findTrashedSince } = await import('../../conductor/internal.ts')
      const trashed = await findTrashedSince(located.record, sources.board)
      return toReport(trashed && trashReport(trashed, sources.redaction), located.record, sources)
    }
    if (located.place === 'trash')
      return toReport(trashReport(located.trashed, sources.redaction), located.record, sources)
    const report = await boardReport(located.job, sources)
    // The job may have left the board during the reads.
    if (report) return report
  }
}

/** Refuses to show a job as gone that may wait or run on another board. @throws NotFound */
async function assertOfThisBoard({ book, flow }: JobRecord, sources: ShowSources): Promise<void> {
  const { boardId, isOfOtherBoard } = await import('../../board/internal.ts')
  const own = { boardId: boardId(sources.board.uri) }
  if (!isFinished(flow.state) && isOfOtherBoard(book.meta, own)) throw await unknownJobError(flow.uuid, sources)
}

function toReport(
  job: JobReport['job'],
  record: JobRecord | undefined,
  { logbooks, redaction }: ShowSources,
): JobReport {
  const logbook = record ? logbookView(record.book, record.flow, redaction) : null
  return { ...(job ? { job } : {}), ...(logbooks ? { logbook } : {}) }
}

async function readJobRecord(job: Job, { logbooks }: ShowSources): Promise<JobRecord | undefined> {
  const { readRecord } = await import('../../conductor/internal.ts')
  return readRecord(job.uuid, job.book.uuid, logbooks?.persistence)
}

/** Returns the report of a job on the board; undefined once it has left the board. */
async function boardReport(job: Job, sources: ShowSources): Promise<JobReport | undefined> {
  const { board, redaction } = sources
  const { boardInternals } = await import('../../board/internal.ts')
  const [read, settings] = await Promise.all([
    readOpenJob(job, { board, record: readJobRecord(job, sources) }),
    readJobSettings(job, boardInternals(board)),
  ])
  const view = jobView(job)
  if (!read || !view) return undefined
  const { cancellation, dependents, waits, record } = read
  const shown = {
    ...view,
    ...postingView(job),
    ...toJobDetails(job, redaction),
    ...defined({
      dependents: dependents.length > 0 ? dependents : undefined,
      waitingFor: waits && view.state === 'UNCLAIMED' ? redaction.texts(waitingView(waits)) : undefined,
      cancellation: cancellation && cancellationView(cancellation, redaction),
      settings,
    }),
  }
  return toReport(shown, record, sources)
}
