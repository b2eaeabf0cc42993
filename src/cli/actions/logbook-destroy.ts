/** What `jobboard logbook destroy` does: removes logbooks that nobody needs any more. */
import { boardId } from '../../board/index.ts'
import { isOfOtherBoard } from '../../conductor/index.ts'
import { IncompatibleVersion, InvalidArgument, InvalidState } from '../../core/errors.ts'
import type { FlowState } from '../../core/states.ts'
import type { BookDetail } from '../../persistence/index.ts'
import { confirmed } from '../confirm.ts'
import type { CliContext } from '../context.ts'
import { each } from '../each.ts'
import { DONE, type ExitCode } from '../exit-codes.ts'
import { findBook, isWhole } from '../finding.ts'
import { type Logbooks, needLogbooks, openTheBoard } from '../opening.ts'
import { ageLimit, boardUri, type SharedOptions } from '../options.ts'

export interface LogbookDestroyCommandOptions extends SharedOptions {
  readonly name?: string
  readonly olderThan?: string
  readonly state?: readonly FlowState[]
  readonly all?: boolean
  readonly force?: boolean
  readonly yes?: boolean
}

type Chosen = Pick<BookDetail, 'uuid' | 'name' | 'meta'>

/** What the board that was named says of a logbook: its job is there, or it is of another board. */
type KeptFor = (book: Chosen) => 'job' | 'other-board' | undefined

/** @throws InvalidArgument where nothing says which, or no board can be asked what it needs */
export async function logbookDestroy(
  uuids: readonly string[],
  options: LogbookDestroyCommandOptions,
  context: CliContext,
): Promise<ExitCode> {
  const { name, olderThan, state, all = false, force = false } = options
  const filtered = name !== undefined || olderThan !== undefined || state !== undefined
  if ([uuids.length > 0, filtered, all].filter(Boolean).length !== 1)
    throw new InvalidArgument('say which logbooks: uuids, or --name, --older-than and --state, or --all')
  const before = ageLimit(olderThan ?? '0', '--older-than')
  if (!force) assertBoardNamed(options, context)
  await using logbooks = await needLogbooks(options, context, { missing: 'throw' })
  const keptFor = force ? () => undefined : await byBoard(options, context)
  const named = uuids.length > 0
  const chosen = named ? await byUuid(uuids, logbooks) : await matching(options, { logbooks, before })
  // By age many are meant, and those that are needed are no mistake; naming one of them is refused.
  const meant = named ? chosen : chosen.filter((book) => keptFor(book) === undefined)
  if (!named) reportKept(chosen, { keptFor, context })
  if (chosen.length === 0) context.stderr.write(`there are no such logbooks in ${logbooks.uri}\n`)
  if (named && !uuids.every(isWhole)) {
    const names = chosen.map(({ uuid, name }) => `${uuid} (${name})`).join(', ')
    const sure = await confirmed(`destroy logbook ${names}?`, { yes: options.yes, offTerminal: 'proceed' }, context)
    if (!sure) return DONE
  }
  const work = async (book: Chosen) => {
    const why = keptFor(book)
    if (why !== undefined) throw kept(book, why)
    return logbooks.persistence.destroyBook(book.uuid, named ? {} : { unchangedSince: before })
  }
  return await each(meant, { what: 'destroying', done: 'destroyed', work }, context)
}

function reportKept(books: readonly Chosen[], { keptFor, context }: { keptFor: KeptFor; context: CliContext }): void {
  const count = (why: ReturnType<KeptFor>) => books.filter((book) => keptFor(book) === why).length
  const [jobs, others] = [count('job'), count('other-board')]
  if (jobs > 0) context.stderr.write(`${jobs} left alone: their jobs are on the board\n`)
  if (others > 0) context.stderr.write(`${others} left alone: they are of other boards; ${ANOTHER_BOARD}\n`)
}

const ANOTHER_BOARD = 'name their board with --board as its conductors do, or add --force'

function kept({ uuid, name, meta }: Chosen, why: 'job' | 'other-board'): InvalidState {
  const logbook = `logbook ${uuid} (${name})`
  return new InvalidState(
    why === 'job'
      ? `${logbook}: its job is on the board and would do everything once more; cancel it first, or add --force`
      : `${logbook}: it is of board ${meta['board']}, and its job may be there; ${ANOTHER_BOARD}`,
  )
}

function assertBoardNamed(options: SharedOptions, context: CliContext): void {
  try {
    boardUri(options, context)
  } catch (cause) {
    const why = 'which logbooks are still needed the board knows: name it with --board URI, or add --force'
    throw new InvalidArgument(why, { cause })
  }
}

async function byBoard(options: SharedOptions, context: CliContext): Promise<KeptFor> {
  await using opened = await openTheBoard(options, context, { create: false })
  const books = new Set<string>()
  for await (const job of opened.board.jobs({ ensureFresh: true })) books.add(job.book.uuid)
  const [hidden] = opened.unreadable
  if (hidden) {
    const why = `a job on ${opened.board.uri} cannot be read here, and its logbook is not known: upgrade, or add --force`
    throw new IncompatibleVersion(why, { cause: hidden })
  }
  const own = { boardId: boardId(opened.board.uri) }
  return ({ uuid, meta }) => {
    if (books.has(uuid)) return 'job'
    return isOfOtherBoard(meta, own) ? 'other-board' : undefined
  }
}

async function byUuid(uuids: readonly string[], logbooks: Logbooks): Promise<Chosen[]> {
  const found: Chosen[] = []
  for (const uuid of uuids) found.push(await findBook(logbooks, uuid, 'change'))
  return found
}

/** Whole before the first is gone: a listing goes on from the last of a page. */
async function matching(
  { name, state }: LogbookDestroyCommandOptions,
  { logbooks, before }: { logbooks: Logbooks; before: Date },
): Promise<Chosen[]> {
  const query = { ...(name === undefined ? {} : { name }), unchangedSince: before }
  const found: Chosen[] = []
  const which = state === undefined ? { finished: true } : { state }
  for await (const book of logbooks.persistence.listBooks({ ...query, ...which })) found.push(book)
  return found
}
