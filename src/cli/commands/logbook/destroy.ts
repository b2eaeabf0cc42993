/** The command `jobboard logbook destroy`: removes logbooks for good. */
import type { Command } from 'commander'
import { IncompatibleVersion, InvalidArgument, InvalidState } from '../../../core/errors.ts'
import type { BookDetail } from '../../../persistence/index.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../../context.ts'
import { findBook, isExact } from '../../find.ts'
import { FLOW_STATE_CHOICES } from '../../input/choices.ts'
import { type FlagTable, type OptionsOf, shared, someOf, withFlags } from '../../input/flags.ts'
import { confirm, forEachWithProgress } from '../../input/for-each.ts'
import { ageLimit, boardUri, type SharedOptions } from '../../input/shared-options.ts'
import { type Logbooks, openNamedBoard, requireLogbooks } from '../../opening.ts'

const FLAGS = {
  '--name <name>': 'logbooks of this name',
  '--older-than <duration>': 'logbooks without a change for longer than this',
  '--state <state>': [
    `logbooks with a flow in this state, one of ${FLOW_STATE_CHOICES.join(', ')}; may be repeated`,
    someOf(FLOW_STATE_CHOICES),
  ],
  '--all': 'all logbooks',
  '--force': 'also logbooks whose jobs are on the board, and logbooks of other boards; the board is not read',
  ...shared('--yes'),
} satisfies FlagTable

type DestroyOptions = OptionsOf<typeof FLAGS>

export function defineLogbookDestroy(logbook: Command, run: RunAction): void {
  withFlags(logbook.command('destroy'), FLAGS)
    .summary('remove logbooks for good')
    .description(
      'Removes logbooks for good, and prints the uuid of each. --name, --older-than and --all select only logbooks ' +
        'whose flows are over, unless --state says otherwise. A logbook whose job is on the board is needed there, ' +
        'and a logbook of another board may be needed on that board: they are kept, unless --force is given; so a board ' +
        'must be named.',
    )
    .argument('[uuid...]', 'uuids of logbooks, their first 13 characters or more, or their ends')
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard logbook destroy --older-than 30d\n  $ jobboard logbook destroy 0199c0de --force',
    )
    .action(run(destroy))
}

type SelectedBook = Pick<BookDetail, 'uuid' | 'name' | 'meta'>

/** The reason of the named board to keep a logbook: its job is on the board, or it belongs to another board. */
type KeepReason = (book: SelectedBook) => 'job' | 'other-board' | undefined

/**
 * Destroys the selected logbooks.
 *
 * @throws InvalidArgument if nothing is selected, or if no board can be asked which logbooks it needs
 */
async function destroy(options: DestroyOptions, context: CliContext, { args: uuids }: Command): Promise<ExitCode> {
  const { name, olderThan, state, all = false, force = false } = options
  const filtered = name !== undefined || olderThan !== undefined || state !== undefined
  if ([uuids.length > 0, filtered, all].filter(Boolean).length !== 1)
    throw new InvalidArgument(
      'select logbooks by uuids, by --name, --older-than and --state, or by --all: exactly one of them',
    )
  const before = ageLimit(olderThan ?? '0', '--older-than')
  if (!force) assertBoardNamed(options, context)
  await using logbooks = await requireLogbooks(options, context, { missing: 'throw' })
  const keptFor = force ? () => undefined : await keepByBoard(options, context)
  const named = uuids.length > 0
  const chosen = named ? await selectByUuid(uuids, logbooks) : await selectMatching(options, { logbooks, before })
  // A selection by filters is broad, and may include logbooks that are needed: they are skipped. A needed logbook that is
  // named is an error.
  const meant = named ? chosen : chosen.filter((book) => keptFor(book) === undefined)
  if (!named) reportKept(chosen, { keptFor, context })
  if (chosen.length === 0) context.stderr.write(`no matching logbooks in ${logbooks.uri}\n`)
  if (named && !uuids.every(isExact)) {
    const names = chosen.map(({ uuid, name }) => `${uuid} (${name})`).join(', ')
    const sure = await confirm(`destroy logbook ${names}?`, { yes: options.yes, offTerminal: 'proceed' }, context)
    if (!sure) return DONE
  }
  const work = async (book: SelectedBook) => {
    const why = keptFor(book)
    if (why !== undefined) throw toKeptLine(book, why)
    return logbooks.persistence.destroyBook(book.uuid, named ? {} : { unchangedSince: before })
  }
  return await forEachWithProgress(meant, { what: 'destroying', done: 'destroyed', work }, context)
}

function reportKept(
  books: readonly SelectedBook[],
  { keptFor, context }: { keptFor: KeepReason; context: CliContext },
): void {
  const count = (why: ReturnType<KeepReason>) => books.filter((book) => keptFor(book) === why).length
  const [jobs, others] = [count('job'), count('other-board')]
  if (jobs > 0) context.stderr.write(`${jobs} kept: their jobs are on the board\n`)
  if (others > 0) context.stderr.write(`${others} kept: they belong to other boards; ${OTHER_BOARD_ADVICE}\n`)
}

const OTHER_BOARD_ADVICE = 'name their board with --board as its conductors do, or add --force'

function toKeptLine({ uuid, name, meta }: SelectedBook, why: 'job' | 'other-board'): InvalidState {
  const logbook = `logbook ${uuid} (${name})`
  return new InvalidState(
    why === 'job'
      ? `${logbook}: its job is on the board and would run from the beginning; cancel it first, or add --force`
      : `${logbook}: it belongs to board ${meta['board']}, and its job may be there; ${OTHER_BOARD_ADVICE}`,
  )
}

function assertBoardNamed(options: SharedOptions, context: CliContext): void {
  try {
    boardUri(options, context)
  } catch (cause) {
    const why = 'only the board knows which logbooks are needed: name it with --board URI, or add --force'
    throw new InvalidArgument(why, { cause })
  }
}

/** Asks the board. @throws IncompatibleVersion if it has a job that cannot be read here */
async function keepByBoard(options: SharedOptions, context: CliContext): Promise<KeepReason> {
  await using opened = await openNamedBoard(options, context, { create: false })
  const books = new Set<string>()
  for await (const job of opened.board.jobs({ ensureFresh: true })) books.add(job.book.uuid)
  const [hidden] = opened.unreadable
  if (hidden) {
    const why = `a job on ${opened.board.uri} cannot be read here, and its logbook is not known: upgrade, or add --force`
    throw new IncompatibleVersion(why, { cause: hidden })
  }
  const { boardId, isOfOtherBoard } = await loadBoardIds()
  const own = { boardId: boardId(opened.board.uri) }
  return ({ uuid, meta }) => {
    if (books.has(uuid)) return 'job'
    return isOfOtherBoard(meta, own) ? 'other-board' : undefined
  }
}

/** Imports in a separate function: TypeScript 6.0 does not rewrite the `.ts` of an import() beside an `await using`. */
async function loadBoardIds() {
  const { boardId, isOfOtherBoard } = await import('../../../board/internal.ts')
  return { boardId, isOfOtherBoard }
}

async function selectByUuid(uuids: readonly string[], logbooks: Logbooks): Promise<SelectedBook[]> {
  const found: SelectedBook[] = []
  for (const uuid of uuids) found.push(await findBook(logbooks, uuid, 'change'))
  return found
}

/**
 * Returns the selected logbooks. Reads the whole list before the first one is destroyed: each page of a listing starts
 * after the last entry of the page before.
 */
async function selectMatching(
  { name, state }: DestroyOptions,
  { logbooks, before }: { logbooks: Logbooks; before: Date },
): Promise<SelectedBook[]> {
  const query = { ...(name === undefined ? {} : { name }), unchangedSince: before }
  const found: SelectedBook[] = []
  const which = state === undefined ? { finished: true } : { state }
  for await (const book of logbooks.persistence.listBooks({ ...query, ...which })) found.push(book)
  return found
}
