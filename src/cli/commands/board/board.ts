/** The command `jobboard board copy`: copies a paused board to another one, of any backend. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { BoardSide, CopyKind, CopyReport, SkippedItem } from '../../../board/internal.ts'
import { InvalidArgument, JobboardError, NotFound } from '../../../core/errors.ts'
import { toMilliseconds } from '../../../core/time.ts'
import { parseUri } from '../../../core/uri.ts'
import type { CopiedBooks, Persistence } from '../../../persistence/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, INTERRUPTED, type RunAction } from '../../context.ts'
import { eachAsJson, type FlagTable, type OptionsOf, withFlags } from '../../input/flags.ts'
import { parseDuration } from '../../input/shared-options.ts'
import { openLogbooksAt, openSideAt } from '../../opening.ts'
import { oneLine, printJson, printLines } from '../../output/output.ts'
import { escapeUnprintable } from '../../output/render/text.ts'

/** The period between two lines about the progress, in milliseconds. */
const PROGRESS_PERIOD_MS = 10_000

const FLAGS = {
  '--dry-run': 'only check, and print the numbers of the source',
  '--wait <duration>': 'how long to wait until the running jobs have ended (default: no wait)',
  '--allow-incomplete': 'exit code 0 even if something was not copied',
  '--logbooks-from <uri>': 'also copy these logbooks, all of them',
  '--logbooks-to <uri>': 'where the copies of the logbooks are written',
  '--json': eachAsJson('kind'),
} satisfies FlagTable

type CopyCommandOptions = OptionsOf<typeof FLAGS>

export function defineBoard(program: Command, run: RunAction): void {
  const board = program
    .command('board')
    .summary('copy a board to another one')
    .description('Commands for whole boards.')
    .helpCommand(false)
  withFlags(board.command('copy'), FLAGS)
    .summary('copy a paused board to another one')
    .description(
      'Copies a paused board with its jobs, trash, history, batches, schedules and limits to a new board, of any backend. The target stays ' +
        'paused until it is resumed, and the source is not changed. A copy that was interrupted is run again: it copies the rest. Exit code 1: ' +
        'something was not copied.',
    )
    .argument('<from>', 'URI of the board that is copied')
    .argument('<to>', 'URI of the new board')
    .addHelpText(
      'after',
      '\nExample:\n  $ jobboard pause --board sqlite:./jobs.db\n  $ jobboard board copy sqlite:./jobs.db zookeeper://127.0.0.1:2181/demo --wait 10m',
    )
    .action(run(copy))
}

async function copy(
  options: CopyCommandOptions,
  context: CliContext,
  { args: [from = '', to = ''] }: Command,
): Promise<ExitCode> {
  assertLogbooks(options)
  const waitMs = toWaitMs(options)
  using interruption = context.listenForInterruption()
  const { signal } = interruption
  await using source = await openSideAt(from, { options, context, create: false })
  try {
    if (options.dryRun) return await plan(source, to, { options, context, signal, waitMs })
    return await copyTo(source, to, { options, context, signal, waitMs })
  } catch (error) {
    if (!signal.aborted || (error instanceof JobboardError && error !== signal.reason)) throw error
    context.stderr.write('interrupted: run the same command again, and it copies the rest\n')
    return INTERRUPTED
  }
}

interface CopyContext {
  readonly options: CopyCommandOptions
  readonly context: CliContext
  readonly signal: AbortSignal
  readonly waitMs: number
}

/** Loads the boards. A separate function: TypeScript does not rewrite `.ts` of a dynamic import in a function with `await using`. */
const loadBoards = () => import('../../../board/internal.ts')

async function copyTo(source: BoardSide, to: string, work: CopyContext): Promise<ExitCode> {
  const { options, context, signal, waitMs } = work
  const { copyBoard } = await loadBoards()
  await using target = await openSideAt(to, { options, context, create: true })
  await using logbooks = await openBothLogbooks(work)
  const onSkipped = ({ kind, name, error }: SkippedItem) =>
    context.stderr.write(`${kind}: ${escapeUnprintable(name)} was not copied: ${oneLine(error)}\n`)
  const sides = { from: source, to: target }
  const reports = await copyBoard(sides, { signal, waitMs, onSkipped, onProgress: progressTo(context) })
  const books = logbooks && (await copyLogbooks(sides, logbooks, work))
  await print(reports, books, work)
  const isWhole = reports.every(isComplete) && !books?.skipped
  if (!isWhole)
    context.stderr.write('not everything was copied: compare the numbers above, and run the command again\n')
  warnOfFences(sides, context)
  const { uri } = target.backend
  context.stderr.write(`board ${uri} is paused; jobboard resume --board '${uri}' lets its jobs run\n`)
  return isWhole || options.allowIncomplete ? DONE : FAILED
}

/** The fences of ZooKeeper are times in nanoseconds, those of other boards in microseconds. */
function warnOfFences(
  { from, to }: { readonly from: BoardSide; readonly to: BoardSide },
  { stderr }: CliContext,
): void {
  const isFiner = ({ backend }: BoardSide) => parseUri(backend.uri, 'board').scheme.startsWith('zookeeper')
  if (isFiner(from) && !isFiner(to))
    stderr.write('fences are smaller on the target: systems that compare ctx.fence must forget those of the source\n')
}

/** Prints the numbers of the source, and changes nothing. */
async function plan(
  source: BoardSide,
  to: string,
  { options, context, signal, waitMs }: CopyContext,
): Promise<ExitCode> {
  const { COPY_KINDS, planCopy } = await loadBoards()
  const opened = await openSideAt(to, { options, context, create: false }).catch((error: unknown) => {
    if (error instanceof NotFound) return undefined
    throw error
  })
  await using target = opened
  const numbers = await planCopy({ from: source, to: target }, { signal, waitMs })
  if (options.json)
    await printJson(
      context,
      COPY_KINDS.map((kind) => ({ kind, source: numbers[kind] })),
    )
  else
    await printLines(
      context,
      COPY_KINDS.map((kind) => `${kind}: ${numbers[kind]} on the source`),
    )
  return DONE
}

interface BothLogbooks extends AsyncDisposable {
  readonly from: Persistence
  readonly to: Persistence
}

/** Opens both logbooks before anything is copied, so that a wrong URI fails early. Undefined where none are named. */
async function openBothLogbooks({ options, context }: CopyContext): Promise<BothLogbooks | undefined> {
  const { logbooksFrom, logbooksTo } = options
  if (logbooksFrom === undefined || logbooksTo === undefined) return undefined
  const from = await openLogbooksAt(logbooksFrom, { options, context, create: false })
  try {
    const to = await openLogbooksAt(logbooksTo, { options, context, create: true })
    return {
      ...{ from, to },
      [Symbol.asyncDispose]: async () => {
        await to.close()
        await from.close()
      },
    }
  } catch (error) {
    await from.close()
    throw error
  }
}

/** Copies the logbooks. The books name the board of their job, and name the target afterwards. */
async function copyLogbooks(
  { from, to }: { readonly from: BoardSide; readonly to: BoardSide },
  logbooks: BothLogbooks,
  { context, signal }: CopyContext,
): Promise<CopiedBooks> {
  const [{ copyBooks }, { boardId }] = await Promise.all([import('../../../persistence/index.ts'), loadBoards()])
  // The path of a file may be written in several ways.
  const toPlace = (id: string) => (id.startsWith('sqlite:') ? resolve(context.cwd, id.slice('sqlite:'.length)) : id)
  const [own, board] = [toPlace(boardId(from.backend.uri)), boardId(to.backend.uri)]
  return await copyBooks(logbooks, {
    signal,
    toMeta: (meta) => (typeof meta['board'] === 'string' && toPlace(meta['board']) === own ? { ...meta, board } : meta),
    onSkipped: ({ uuid }, error) => context.stderr.write(`logbooks: ${uuid} was not copied: ${oneLine(error)}\n`),
  })
}

async function print(
  reports: readonly CopyReport[],
  books: CopiedBooks | undefined,
  { options, context }: CopyContext,
): Promise<void> {
  if (options.json) {
    await printJson(context, [...reports, ...(books ? [{ kind: 'logbooks', ...books }] : [])])
    return
  }
  await printLines(context, reports.map(describe))
  if (books)
    await printLines(context, [
      `logbooks: ${books.copied} copied${books.skipped > 0 ? `, ${books.skipped} not copied` : ''}`,
    ])
}

function describe({ kind, copied, present, skipped, source, target }: CopyReport): string {
  const parts = [`${copied} copied`]
  if (present > 0) parts.push(`${present} there already`)
  if (skipped > 0) parts.push(`${skipped} not copied`)
  return `${kind}: ${parts.join(', ')}; ${source} on the source, ${target} on the target`
}

/** Returns whether nothing was skipped, and the target has as many items as the source. It may have more: outlines that its conductors have written. */
function isComplete({ kind, skipped, source, target }: CopyReport): boolean {
  return skipped === 0 && (kind === 'jobs' ? target === source : target >= source)
}

/** Returns a listener that writes a line from time to time. */
function progressTo({ stderr }: CliContext): (kind: CopyKind, count: { readonly copied: number }) => void {
  let shownAt = performance.now()
  return (kind, { copied }) => {
    if (performance.now() - shownAt < PROGRESS_PERIOD_MS) return
    shownAt = performance.now()
    stderr.write(`${kind}: ${copied} copied\n`)
  }
}

/** @throws InvalidArgument */
function toWaitMs({ wait }: CopyCommandOptions): number {
  return wait === undefined ? 0 : toMilliseconds(parseDuration(wait, '--wait'), '--wait')
}

/** @throws InvalidArgument */
function assertLogbooks({ logbooksFrom, logbooksTo }: CopyCommandOptions): void {
  if ((logbooksFrom === undefined) !== (logbooksTo === undefined))
    throw new InvalidArgument('--logbooks-from and --logbooks-to belong together: give both')
}
