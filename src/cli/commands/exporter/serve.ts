/** Serves the gauges of boards over HTTP until Ctrl-C. A board that is away, or not created yet, is opened as soon as possible. */
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
import { contextOf, openNamedBoard } from '../../opening.ts'
import { escapeUnprintable } from '../../output/render/text.ts'
import { BOARD_GAUGES } from './board-gauges.ts'
import { GaugeReader } from './gauge-reader.ts'

/** The pauses between attempts to open a board that is away or not created yet. */
const REOPEN_PAUSES = { firstPauseMs: 1_000, maxPauseMs: 15_000 } as const

/** A board of the exporter; it has a reader while it is open. */
interface ExportedBoard {
  readonly uri: string
  readonly auth: string | undefined
  readonly label: string
  reader: GaugeReader | undefined
}

interface ExporterParts {
  readonly options: SharedOptions
  readonly context: CliContext
}

/**
 * Serves the gauges until Ctrl-C.
 *
 * @throws InvalidArgument if it cannot listen on the address; the error of a board that cannot be opened although it can be reached
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
    answer: (path) => toHttpAnswer(path, boards),
    onError: (error) => report(error, 'jobboard exporter', context),
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

/** Labels each board by its URI without the servers. If two boards would have the same label, all labels have the servers. */
function toExportedBoards(chosen: readonly ChosenBoard[]): ExportedBoard[] {
  const labels = chosen.map(({ uri }) => toBoardLabel(uri))
  const isUnique = new Set(labels).size === labels.length
  return chosen.map(({ uri, auth }, index) => {
    const label = isUnique ? labels[index] : undefined
    return { uri, auth, label: label ?? redactUri(uri), reader: undefined }
  })
}

/** Opens a board as soon as it can be reached, and has a reader for it until the signal fires. @throws errors that a retry cannot solve */
async function exportBoard(
  board: ExportedBoard,
  { options, context, signal }: ExporterParts & { readonly signal: AbortSignal },
): Promise<void> {
  const open = () => openNamedBoard({ ...options, board: board.uri }, contextOf(board, context), { create: false })
  let reported: string | undefined
  await using opened = await retryUntilAborted(open, {
    ...{ ...REOPEN_PAUSES, signal },
    // A missing board may be created later, by its first user. It must not end the exporter of the other boards.
    isRetryable: (error) => error instanceof NotConnected || error instanceof NotFound,
    onRetry: (error) => {
      const reason = describeError(error)
      if (reason !== reported) report(error, board.label, context)
      reported = reason
    },
  })
  if (!opened) return
  using reader = new GaugeReader(opened.board, { label: board.label })
  board.reader = reader
  await whenAborted(signal)
  board.reader = undefined
}

async function toHttpAnswer(path: string, boards: readonly ExportedBoard[]): Promise<HttpAnswer> {
  if (path === '/metrics')
    return { status: 200, contentType: PROMETHEUS_CONTENT_TYPE, body: await toMetricsText(boards) }
  if (path !== '/healthz') return toJsonAnswer(404, { error: 'not found; use /metrics or /healthz' })
  return toJsonAnswer(200, { boards: boards.map(({ label, reader }) => ({ board: label, opened: Boolean(reader) })) })
}

async function toMetricsText(boards: readonly ExportedBoard[]): Promise<string> {
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
