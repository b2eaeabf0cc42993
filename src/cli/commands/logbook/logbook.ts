/** The commands `jobboard logbook …`: list and show logbooks. */
import type { Command } from 'commander'
import { NotFound } from '../../../core/errors.ts'
import { Redactor } from '../../../core/redaction.ts'
import type { BookDetail, Persistence } from '../../../persistence/index.ts'
import { type BookView, bookReport, bookView } from '../../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../../context.ts'
import { findBook } from '../../find.ts'
import { DEFAULT_PAGE_SIZE, FLOW_STATE_CHOICES } from '../../input/choices.ts'
import {
  count,
  eachAsJson,
  type FlagTable,
  type JsonOptions,
  type OptionsOf,
  shared,
  someOf,
  withFlags,
} from '../../input/flags.ts'
import { ageLimit, definedOnly, redactedKeys } from '../../input/shared-options.ts'
import { requireLogbooks } from '../../opening.ts'
import { printDrawn, printJson, printLines, reportError } from '../../output/output.ts'
import { defineLogbookDestroy } from './destroy.ts'

const LIST_FLAGS = {
  '--name <name>': 'only logbooks of this name',
  '--state <state>': [
    `only logbooks with a flow in this state, one of ${FLOW_STATE_CHOICES.join(', ')}; may be repeated`,
    someOf(FLOW_STATE_CHOICES),
  ],
  '--older-than <duration>': 'only logbooks without a change for longer than this',
  '--limit <n>': [`number of logbooks on a page (default: ${DEFAULT_PAGE_SIZE})`, count()],
  '--after <uuid>': 'the page after this logbook, the last of the page before',
  '--json': eachAsJson('logbook'),
} satisfies FlagTable

type ListOptions = OptionsOf<typeof LIST_FLAGS>

export function defineLogbook(program: Command, run: RunAction): void {
  const logbook = program
    .command('logbook')
    .summary('list, show and destroy logbooks')
    .description('Lists, shows and destroys logbooks.')
    .helpCommand(false)
  withFlags(logbook.command('list'), LIST_FLAGS)
    .summary('list logbooks')
    .description(
      'Lists logbooks with the state of their flows. If there is another page, standard error says how to print it. ' +
        'Pages follow the order in which logbooks are stored; on each page, the logbook that changed last comes first.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard logbook list --state FAILURE --state REVERTED\n  $ jobboard logbook list --older-than 30d --persistence directory:./logbooks',
    )
    .action(run(list))
  withFlags(logbook.command('show'), shared('--json'))
    .summary('show a logbook')
    .description(
      "Shows a logbook: its flows, their atoms with state and duration, and failures with their causes. A job's logbook " +
        "has the job's uuid, unless the job was posted with another.",
    )
    .argument('<uuid>', 'uuid of the logbook, its beginning or its end')
    .addHelpText('after', '\nExample:\n  $ jobboard logbook show 0199c0de --persistence directory:./logbooks')
    .action(run(show))
  defineLogbookDestroy(logbook, run)
}

/** The number of flows that are read at once. */
const MAX_CONCURRENT_READS = 16

/** Lists the logbooks. Reports each logbook that cannot be read in one line on standard error, and lists the rest. */
async function list(options: ListOptions, context: CliContext): Promise<ExitCode> {
  const query = toQuery(options)
  await using logbooks = await requireLogbooks(options, context, { missing: 'throw' })
  const { persistence } = logbooks
  const { limit = DEFAULT_PAGE_SIZE } = options
  const books: BookDetail[] = []
  // One more than the page shows whether there is another page.
  for await (const book of persistence.listBooks({ ...query, limit: limit + 1 })) books.push(book)
  const page = books.slice(0, limit)
  const { views, faults } = await toViews(page, persistence)
  views.sort((a, b) => b.updatedAt.getTime() - a.updatedAt.getTime())
  if (options.json) await printJson(context, views)
  else if (page.length === 0) await printLines(context, [`no matching logbooks in ${logbooks.uri}`])
  else await printDrawn(context, ({ logbooksTable }, screen) => logbooksTable(views, screen))
  if (books.length > limit) context.stderr.write(`there are more: add --after ${page.at(-1)?.uuid}\n`)
  for (const fault of faults) reportError(fault, context)
  return faults.length > 0 ? FAILED : DONE
}

function toQuery({ name, state, olderThan, after }: ListOptions) {
  return {
    ...definedOnly({ name, state }),
    ...(olderThan === undefined ? {} : { unchangedSince: ageLimit(olderThan, '--older-than') }),
    ...(after === undefined ? {} : { after: after.toLowerCase() }),
  }
}

async function toViews(
  books: readonly BookDetail[],
  persistence: Persistence,
): Promise<{ readonly views: BookView[]; readonly faults: unknown[] }> {
  const views: BookView[] = []
  const faults: unknown[] = []
  for (let start = 0; start < books.length; start += MAX_CONCURRENT_READS) {
    const read = await Promise.allSettled(
      // A logbook that cannot be shown is reported like an unreadable one, and does not hide the others.
      books
        .slice(start, start + MAX_CONCURRENT_READS)
        .map(async ({ uuid }) => bookView(await persistence.getBook(uuid))),
    )
    for (const result of read) {
      if (result.status === 'fulfilled') views.push(result.value)
      // A logbook that is not found was destroyed since it was listed.
      else if (!(result.reason instanceof NotFound)) faults.push(result.reason)
    }
  }
  return { views, faults }
}

/** Shows one logbook. @throws NotFound if there is none */
async function show(options: JsonOptions, context: CliContext, { args: [uuid = ''] }: Command): Promise<ExitCode> {
  const redaction = new Redactor(redactedKeys(options, context))
  await using logbooks = await requireLogbooks(options, context, { missing: 'throw' })
  const { uuid: found } = await findBook(logbooks, uuid, 'look')
  const report = bookReport(await logbooks.persistence.getBook(found), redaction)
  if (options.json) await printJson(context, [report])
  else await printDrawn(context, ({ logbookReport }, screen) => logbookReport(report, screen))
  return DONE
}
