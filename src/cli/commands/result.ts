/** The command `jobboard result`: waits for a job and prints what it has provided. */
import type { Command } from 'commander'
import type { JobBoard, JobResult, ResultOptions } from '../../board/index.ts'
import { NotFound, ResultNotKept } from '../../core/errors.ts'
import { JobFailed } from '../../core/failure.ts'
import { parseReference } from '../../core/job-names.ts'
import { Redactor } from '../../core/redaction.ts'
import { redactResults } from '../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../context.ts'
import { wholeUuid } from '../find.ts'
import { type FlagTable, type OptionsOf, shared, texts, withFlags } from '../input/flags.ts'
import { chooseFlow, loadFlows } from '../input/flows-module.ts'
import { definedOnly, parseDuration, redactedKeys } from '../input/shared-options.ts'
import { type Logbooks, openNamedBoard } from '../opening.ts'
import { logbooksToFollow } from '../output/follow.ts'
import { printDrawn, printJson } from '../output/output.ts'

const FLAGS = {
  ...shared('--within <duration>'),
  '--flows <module>': [
    'module that exports its flow, to read results from the logbook: a path, a package, or auto; may be repeated',
    texts,
  ],
  ...shared('--book <uuid>'),
  '--json': 'print a JSON object with uuid, state, and results or reason',
} satisfies FlagTable

type ResultCommandOptions = OptionsOf<typeof FLAGS>

export function defineResult(program: Command, run: RunAction): void {
  withFlags(program.command('result'), FLAGS)
    .summary('wait for a job, and print its results')
    .description(
      'Waits until a job is done and prints its results. They are on the board where its flow has keepResults; for other flows, ' +
        'name the logbooks and the module of the flow. The exit code is 0 for results, and 1 for a job that has failed, whose ' +
        'results were not kept, or that is not done when --within is over. --redact hides the values of the keys that it names.',
    )
    .argument('<uuid>', 'uuid of the job, its beginning or its end, or its reference')
    .addHelpText('after', '\nExample:\n  $ jobboard result 0199c0de --within 10m --json')
    .action(run(printResult))
}

/** @throws NotFound, ResultNotKept; Timeout if the job is not done in time */
async function printResult(
  options: ResultCommandOptions,
  context: CliContext,
  { args: [part = ''] }: Command,
): Promise<ExitCode> {
  const limits = options.within === undefined ? {} : { timeout: parseDuration(options.within, '--within') }
  const redaction = new Redactor(redactedKeys(options, context))
  await using opened = await openNamedBoard(options, context, { create: false })
  await using logbooks = await logbooksToFollow(options, context)
  const { board } = opened
  const { uuid, reference } = await wholeUuid(part, { board, logbooks })
  try {
    const asked = { ...limits, ...definedOnly({ book: options.book }) }
    const found = await readResult(reference, { board, logbooks, asked, options, context })
    const results = redactResults(found.results, redaction)
    if (options.json) await printJson(context, [{ uuid, state: 'COMPLETE', results }])
    else await printDrawn(context, ({ resultLines }) => resultLines(results))
    return DONE
  } catch (error) {
    if (!(error instanceof JobFailed)) throw error
    const reason = redaction.text(error.reason)
    if (options.json) await printJson(context, [{ uuid, state: 'FAILED', reason }])
    else throw new JobFailed(`job ${uuid} failed: ${reason}`, { uuid, reason, failures: [] })
    return FAILED
  }
}

interface ResultSource {
  readonly board: JobBoard
  readonly logbooks: Logbooks | undefined
  readonly asked: ResultOptions
  readonly options: ResultCommandOptions
  readonly context: CliContext
}

/** Reads the results from the board; if it has none, from the logbook with the flow of the module that was named. */
async function readResult(reference: string, source: ResultSource): Promise<JobResult> {
  const { board, logbooks, asked, options, context } = source
  const places = { ...asked, ...definedOnly({ persistence: logbooks?.persistence }) }
  try {
    return await board.result(reference, places)
  } catch (error) {
    if (!(error instanceof ResultNotKept)) throw error
    const { uuid } = parseReference(reference)
    if (!logbooks || !options.flows)
      throw new ResultNotKept(
        `job ${uuid} is done, and its results are not on the board; name its logbooks with --persistence and its flow's module with ` +
          `--flows, or see what its tasks have returned: jobboard track ${uuid}`,
        { cause: error },
      )
    const book = options.book ?? uuid
    const flow = (await logbooks.persistence.getBook(book)).flows.find((each) => each.uuid === uuid)
    if (!flow) throw new NotFound(`logbook ${book} has no flow of job ${uuid}; name its logbook with --book`)
    const flows = await loadFlows(options.flows, context)
    return board.result(reference, { ...places, flow: chooseFlow(flow.name, flows, options.flows) })
  }
}
