/** Serves the gauges of boards over HTTP until Ctrl-C. A board that is away, or not made yet, is opened when it is there. */
import { toBoardLabel } from '../../../conductor/internal.ts'
import { retryUntilAborted } from '../../../core/async/retry.ts'
import { NotConnected, NotFound } from '../../../core/errors.ts'
import { describeError } from '../../../core/failure.ts'
import { redactUri } from '../../../core/uri.ts'
import {
  type HttpAddress,
  type HttpAnswer,
  PROMETHEUS_CONTENT_TYPE,
  PrometheusSink,
  serveHttp,
  toJsonAnswer,
} from '../../../telemetry/internal.ts'
import type { CliContext } from '../../context.ts'
import type { ChosenBoard } from '../../input/board-flags.ts'
import type { SharedOptions } from '../../input/shared-options.ts'
import { openNamedBoard } from '../../opening.ts'
import { escapeUnprintable } from '../../output/render/text.ts'
import { BOARD_GAUGES } from './board-gauges.ts'
import { BoardReader } from './board-reader.ts'

/** The pauses between two attempts to open a board that could not be reached. */
const REOPEN_PAUSES = { firstPauseMs: 1_000, maxPauseMs: 15_000 } as const

/** A board of the exporter; it has a reader while it is open. */
interface ExportedBoard {
  readonly uri: string
  readonly label: string
  reader: BoardReader | undefined
}

interface ExporterParts {
  readonly options: SharedOptions
  readonly context: CliContext
}

/**
 * Serves until Ctrl-C.
 *
 * @throws InvalidArgument when it cannot listen there; the error of a board that cannot be opened although it can be reached
 */
export async function serveExporter(
  chosen: readonly ChosenBoard[],
  { address, ...parts }: ExporterParts & { readonly address: HttpAddress },
): Promise<void> {
  const { context } = parts
  const boards = toExportedBoards(chosen)
  using interruption = context.listenForInterruption()
  const stop = new AbortController()
  const signal = AbortSignal.any([interruption.signal, stop.signal])
  await using server = await serveHttp(address, {
    name: 'jobboard exporter',
    answer: (path) => answer(path, boards),
    failed: (error) => report(error, 'jobboard exporter', context),
  })
  const names = boards.map(({ label }) => label).join(', ')
  context.stdout.write(`${escapeUnprintable(`exporter of ${names} at ${server.url}/metrics; Ctrl-C stops it`)}\n`)
  const exporting = boards.map((board) => exportBoard(board, { ...parts, signal }))
  try {
    await Promise.all(exporting)
  } finally {
    stop.abort()
    await Promise.allSettled(exporting)
  }
}

/** Names each board without its servers; with them where two boards would have one name. */
function toExportedBoards(chosen: readonly ChosenBoard[]): ExportedBoard[] {
  const labels = chosen.map(({ uri }) => toBoardLabel(uri))
  const isUnique = new Set(labels).size === labels.length
  return chosen.map(({ uri }, index) => {
    const label = isUnique ? labels[index] : undefined
    return { uri, label: label ?? redactUri(uri), reader: undefined }
  })
}

/** Opens a board as soon as it can be reached, and lets it be read until the signal fires. @throws what waiting does not cure */
async function exportBoard(
  board: ExportedBoard,
  { options, context, signal }: ExporterParts & { readonly signal: AbortSignal },
): Promise<void> {
  const open = () => openNamedBoard({ ...options, board: board.uri }, context, { create: false })
  let reported: string | undefined
  await using opened = await retryUntilAborted(open, {
    ...{ ...REOPEN_PAUSES, signal },
    // A board that is missing may be made later, by its first user; it ends the exporter of the others no more than one that is away.
    isRetryable: (error) => error instanceof NotConnected || error instanceof NotFound,
    onRetry: (error) => {
      const reason = describeError(error)
      if (reason !== reported) report(error, board.label, context)
      reported = reason
    },
  })
  if (!opened) return
  using reader = new BoardReader(opened.board, { label: board.label })
  board.reader = reader
  await whenAborted(signal)
  board.reader = undefined
}

async function answer(path: string, boards: readonly ExportedBoard[]): Promise<HttpAnswer> {
  if (path === '/metrics') return { status: 200, contentType: PROMETHEUS_CONTENT_TYPE, body: await toText(boards) }
  if (path !== '/healthz') return toJsonAnswer(404, { error: 'not found; use /metrics or /healthz' })
  return toJsonAnswer(200, { boards: boards.map(({ label, reader }) => ({ board: label, opened: Boolean(reader) })) })
}

async function toText(boards: readonly ExportedBoard[]): Promise<string> {
  const sink = new PrometheusSink(BOARD_GAUGES)
  await Promise.all(
    boards.map(async ({ label, reader }) => {
      if (reader) await reader.record(sink)
      else sink.record('jobboard_board_up', 0, { board: label })
    }),
  )
  return sink.text()
}

function report(error: unknown, what: string, { stderr }: CliContext): void {
  stderr.write(`${escapeUnprintable(`${what}: ${describeError(error)}`)}\n`)
}

async function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}
