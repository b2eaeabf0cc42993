/** The work of `jobboard show`: shows one job, on the board, in the trash, or in its logbook. */
import type { JobBoard, TrashedJob } from '../../board/index.ts'
import { InvalidArgument, NotFound } from '../../core/errors.ts'
import { Redactor } from '../../core/redaction.ts'
import { toDot, toMermaid } from '../../flow/index.ts'
import type { Persistence } from '../../persistence/index.ts'
import type { CliContext } from '../context.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import type { GRAPH_FORMATS } from '../input/choices.ts'
import { chooseFlow, loadFlows } from '../input/flows-module.ts'
import { redactedKeys, type SharedOptions } from '../input/shared-options.ts'
import { assertUuidPart, wholeUuid } from '../locate.ts'
import { type Logbooks, openLogbooks, openNamedBoard } from '../opening.ts'
import { printJson, printLines } from '../output/output.ts'
import { reportLines } from '../output/render/report.ts'
import { toScreen } from '../output/render/screen.ts'
import {
  cancellationView,
  type JobReport,
  jobView,
  type LogbookView,
  logbookView,
  toJobDetails,
  trashView,
} from '../views/views.ts'

export interface ShowCommandOptions extends SharedOptions {
  readonly json?: boolean
  readonly graph?: boolean
  readonly format: GraphFormat
  readonly flows?: string
}

export async function show(named: string, options: ShowCommandOptions, context: CliContext): Promise<ExitCode> {
  assertUuidPart(named, 'look')
  const redaction = new Redactor(redactedKeys(options, context))
  await using logbooks = await openLogbooks(options, context)
  await using opened = await openNamedBoard(options, context, { create: false })
  const uuid = await wholeUuid(named, { board: opened.board, logbooks })
  const report = await reportOn(uuid, { board: opened.board, logbooks, redaction })
  if (options.graph) await printLines(context, (await drawFlow(uuid, report, { ...options, context })).split('\n'))
  else if (options.json) await printJson(context, [{ uuid, ...report }])
  else await printLines(context, reportLines(uuid, report, toScreen(context)))
  return DONE
}

type GraphFormat = (typeof GRAPH_FORMATS)[number]

/**
 * Draws the flow of a job, in the version that the job began with if the module has it.
 *
 * @throws InvalidArgument if no module is named, or if it has no such flow
 */
async function drawFlow(
  uuid: string,
  { job, logbook }: JobReport,
  { flows: module, format, context }: { flows?: string; format: GraphFormat; context: CliContext },
): Promise<string> {
  if (module === undefined)
    throw new InvalidArgument('--graph needs the code of the flow: add --flows MODULE, which exports it')
  const name = logbook?.flow ?? job?.flow
  if (name === undefined) throw new InvalidArgument(`job ${uuid} names no flow; there is nothing to draw`)
  const flows = await loadFlows(module, context)
  const version = logbook?.version ?? job?.version
  const exact = flows.find((flow) => flow.name === name && flow.version === version)
  const states = Object.fromEntries((logbook?.atoms ?? []).map((atom) => [atom.name, atom.state]))
  const draw = format === 'dot' ? toDot : toMermaid
  return draw(exact ?? chooseFlow(name, flows, module), { states }).trimEnd()
}

interface ShowSources {
  readonly board: JobBoard
  readonly logbooks: Logbooks | undefined
  readonly redaction: Redactor
}

/** Returns the report of a job. @throws NotFound if the job is in none of the places */
async function reportOn(uuid: string, places: ShowSources): Promise<JobReport> {
  const { logbooks, redaction } = places
  const found = (await locateOnBoard(uuid, places)) ?? (await locateInTrash(uuid, places))
  const book = found?.book ?? uuid
  const logbook = logbooks ? await readLogbook(uuid, { book, ...logbooks, redaction }) : undefined
  if (!found && !logbook) throw notFoundError(uuid, places)
  return { ...(found ? { job: found.job } : {}), ...(logbook === undefined ? {} : { logbook }) }
}

interface LocatedJob {
  readonly job: NonNullable<JobReport['job']>
  /** The uuid of the job's logbook. */
  readonly book: string
}

async function locateOnBoard(uuid: string, { board, redaction }: ShowSources): Promise<LocatedJob | undefined> {
  try {
    const job = await board.find(uuid)
    const asked = job.cancelRequested ? await board.cancellation(job) : undefined
    const view = jobView(job)
    const cancellation = asked ? { cancellation: cancellationView(asked, redaction) } : {}
    return view && { job: { ...view, ...toJobDetails(job, redaction), ...cancellation }, book: job.book.uuid }
  } catch (error) {
    if (error instanceof NotFound) return undefined
    throw error
  }
}

/** Finds the newest trashed job of a uuid. Reads the whole trash. */
async function locateInTrash(uuid: string, { board, redaction }: ShowSources): Promise<LocatedJob | undefined> {
  let found: TrashedJob | undefined
  for await (const job of board.trashed()) if (job.uuid === uuid) found = job
  return found && { job: { ...trashView(found, redaction), ...toJobDetails(found, redaction) }, book: found.book.uuid }
}

/** Reads the logbook of a job. Returns null if the job has none, or none with its flow in it. */
async function readLogbook(
  uuid: string,
  where: { book: string; persistence: Persistence; redaction: Redactor },
): Promise<LogbookView | null> {
  try {
    const book = await where.persistence.getBook(where.book)
    const flow = book.flows.find((candidate) => candidate.uuid === uuid)
    return flow ? logbookView(book, flow, where.redaction) : null
  } catch (error) {
    if (error instanceof NotFound) return null
    throw error
  }
}

function notFoundError(uuid: string, { board, logbooks }: ShowSources): NotFound {
  const looked = `job ${uuid} is not on ${board.uri} and not in its trash`
  return new NotFound(
    logbooks
      ? `${looked}, and ${logbooks.uri} has no logbook of it; check the uuid, --board and --persistence`
      : `${looked}; if it is done, --persistence URI shows its logbook`,
  )
}
