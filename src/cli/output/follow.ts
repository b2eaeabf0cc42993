/** Waiting for a job, with reports of its flow's progress. */
import type { Job } from '../../board/index.ts'
import { NotFound } from '../../core/errors.ts'
import { Redactor } from '../../core/redaction.ts'
import { type Duration, sleep } from '../../core/time.ts'
import type { AtomDetail, FlowDetail } from '../../persistence/index.ts'
import { checkpointView, formatCheckpoint } from '../../views/index.ts'
import type { CliContext } from '../context.ts'
import { type SharedOptions, UNLIMITED_WAIT_NOTICE, type UnlimitedWait } from '../input/shared-options.ts'
import { type Logbooks, openLogbooks } from '../opening.ts'
import { escapeUnprintable } from './render/text.ts'

export interface Follow extends UnlimitedWait {
  readonly logbooks: Logbooks | undefined
  readonly timeout?: Duration
  /** The keys whose values are not printed. */
  readonly redact: readonly string[]
}

/** Opens the named logbooks if they can be read: progress is optional, and its errors are no reason to fail. */
export async function logbooksToFollow(options: SharedOptions, context: CliContext): Promise<Logbooks | undefined> {
  return openLogbooks(options, context, { missing: 'throw' }).catch(() => undefined)
}

/** The pause between two reads of the progress. The board itself notifies of the end at once. */
const POLL_PERIOD_MS = 1_000
const CLEAR_LINE = '\r\x1b[K'

/** Waits for a job and returns how it left the board. @throws Timeout when the time is over first */
export async function follow(
  job: Job,
  { logbooks, timeout, redact, endless = false }: Follow,
  context: CliContext,
): Promise<'COMPLETE' | 'TRASHED'> {
  if (endless) context.stderr.write(UNLIMITED_WAIT_NOTICE)
  const over = new AbortController()
  const reporting = logbooks ? reportProgress(job, { logbooks, over: over.signal, redact }, context) : undefined
  try {
    return await job.wait(timeout === undefined ? {} : { timeout })
  } finally {
    over.abort()
    await reporting
  }
}

/** Reports the progress. Never rejects: a logbook that cannot be read now is no reason to stop the wait. */
async function reportProgress(
  job: Job,
  { logbooks, over, redact }: { logbooks: Logbooks; over: AbortSignal; redact: readonly string[] },
  { stderr }: CliContext,
): Promise<void> {
  const { truncate } = await import('./render/columns.ts')
  const redaction = new Redactor(redact)
  const onTerminal = stderr.columns !== undefined
  let said = ''
  while (!over.aborted) {
    await sleep(POLL_PERIOD_MS, { signal: over }).catch(() => undefined)
    const line = over.aborted ? said : await readProgress(job, logbooks, redaction).catch(() => said)
    if (line === said || over.aborted) continue
    // The terminal clears a line as a whole only if it has not wrapped it.
    stderr.write(
      onTerminal ? `${CLEAR_LINE}${truncate(line, stderr.columns || Number.POSITIVE_INFINITY)}` : `${line}\n`,
    )
    said = line
  }
  if (onTerminal && said !== '') stderr.write(CLEAR_LINE)
}

async function readProgress(job: Job, { persistence }: Logbooks, redaction: Redactor): Promise<string> {
  if (job.state === 'UNCLAIMED') return job.runs === 0 ? 'waiting' : `waiting, after run ${job.runs}`
  const book = await persistence.getBook(job.book.uuid).catch((error: unknown) => {
    if (error instanceof NotFound) return undefined
    throw error
  })
  const flow = book?.flows.find(({ uuid }) => uuid === job.uuid)
  return flow ? escapeUnprintable(countAtoms(flow, redaction)) : 'running'
}

function countAtoms({ atoms, run }: FlowDetail, redaction: Redactor): string {
  const tasks = atoms.filter(({ kind }) => kind === 'task')
  const done = tasks.filter(({ state }) => state === 'SUCCESS' || state === 'IGNORE').length
  const busy = tasks.filter(({ state }) => state === 'RUNNING' || state === 'REVERTING')
  const now = busy.length > 0 ? `: ${busy.map((atom) => describeAtom(atom, redaction)).join(', ')}` : ''
  return `run ${run}, ${done} of ${tasks.length} tasks done${now}`
}

/** Returns the name of an atom with what it has reported: `import 40% (page 3 of 7; checkpoint {"row":1200})`. */
function describeAtom({ name, state, meta, progressMessage, checkpoint }: AtomDetail, redaction: Redactor): string {
  const isReverting = state === 'REVERTING'
  const percent = typeof meta['progress'] === 'number' ? ` ${Math.round(meta['progress'] * 100)}%` : ''
  const reports = [
    ...(progressMessage !== undefined && !isReverting ? [redaction.text(progressMessage)] : []),
    ...(checkpoint ? [`checkpoint ${formatCheckpoint(checkpointView(checkpoint, redaction))}`] : []),
  ]
  return `${isReverting ? 'reverting ' : ''}${name}${percent}${reports.length > 0 ? ` (${reports.join('; ')})` : ''}`
}
