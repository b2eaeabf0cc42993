/** The work of `jobboard logbook list`: prints one page of logbooks. */
import { NotFound } from '../../../core/errors.ts'
import type { FlowState } from '../../../core/states.ts'
import type { BookDetail, Persistence } from '../../../persistence/index.ts'
import type { CliContext } from '../../context.ts'
import { DONE, type ExitCode, FAILED } from '../../exit-codes.ts'
import { DEFAULT_PAGE_SIZE } from '../../input/choices.ts'
import { ageLimit, type SharedOptions } from '../../input/shared-options.ts'
import { requireLogbooks } from '../../opening.ts'
import { reportError } from '../../output/error-report.ts'
import { printJson, printLines } from '../../output/output.ts'
import { logbooksTable } from '../../output/render/logbooks.ts'
import { toScreen } from '../../output/render/screen.ts'
import { type BookView, bookView } from '../../views/logbook-view.ts'

export interface LogbookListCommandOptions extends SharedOptions {
  readonly name?: string
  readonly state?: readonly FlowState[]
  readonly olderThan?: string
  readonly limit?: number
  readonly after?: string
  readonly json?: boolean
}

/** The number of flows that are read at once. */
const MAX_CONCURRENT_READS = 16

/** Lists the logbooks. Reports each logbook that cannot be read in one line on standard error, and lists the rest. */
export async function logbookList(options: LogbookListCommandOptions, context: CliContext): Promise<ExitCode> {
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
  else await printLines(context, logbooksTable(views, toScreen(context)))
  if (books.length > limit) context.stderr.write(`there are more: add --after ${page.at(-1)?.uuid}\n`)
  for (const fault of faults) reportError(fault, context)
  return faults.length > 0 ? FAILED : DONE
}

function toQuery({ name, state, olderThan, after }: LogbookListCommandOptions) {
  return {
    ...(name === undefined ? {} : { name }),
    ...(state === undefined ? {} : { state }),
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
      // A logbook that cannot be shown is reported like one that cannot be read, and does not hide the others.
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
