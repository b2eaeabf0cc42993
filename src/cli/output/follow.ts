/** Waiting for a job, with reports of its flow's progress. */
import type { Job } from '../../board/index.ts'
import { NotFound } from '../../core/errors.ts'
import { type Duration, sleep } from '../../core/time.ts'
import type { FlowDetail } from '../../persistence/index.ts'
import type { CliContext } from '../context.ts'
import { type SharedOptions, UNLIMITED_WAIT_NOTICE, type UnlimitedWait } from '../input/shared-options.ts'
import { type Logbooks, openLogbooks } from '../opening.ts'
import { escapeUnprintable } from './render/text.ts'

export interface Follow extends UnlimitedWait {
  readonly logbooks: Logbooks | undefined
  readonly timeout?: Duration
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
  { logbooks, timeout, endless = false }: Follow,
  context: CliContext,
): Promise<'COMPLETE' | 'TRASHED'> {
  if (endless) context.stderr.write(UNLIMITED_WAIT_NOTICE)
  const over = new AbortController()
  const reporting = logbooks ? reportProgress(job, { logbooks, over: over.signal }, context) : undefined
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
  { logbooks, over }: { logbooks: Logbooks; over: AbortSignal },
  { stderr }: CliContext,
): Promise<void> {
  const { truncate } = await import('./render/columns.ts')
  const onTerminal = stderr.columns !== undefined
  let said = ''
  while (!over.aborted) {
    await sleep(POLL_PERIOD_MS, { signal: over }).catch(() => undefined)
    const line = over.aborted ? said : await readProgress(job, logbooks).catch(() => said)
    if (line === said || over.aborted) continue
    // The terminal clears a line as a whole only if it has not wrapped it.
    stderr.write(
      onTerminal ? `${CLEAR_LINE}${truncate(line, stderr.columns || Number.POSITIVE_INFINITY)}` : `${line}\n`,
    )
    said = line
  }
  if (onTerminal && said !== '') stderr.write(CLEAR_LINE)
}

async function readProgress(job: Job, { persistence }: Logbooks): Promise<string> {
  if (job.state === 'UNCLAIMED') return job.runs === 0 ? 'waiting' : `waiting, after run ${job.runs}`
  const book = await persistence.getBook(job.book.uuid).catch((error: unknown) => {
    if (error instanceof NotFound) return undefined
    throw error
  })
  const flow = book?.flows.find(({ uuid }) => uuid === job.uuid)
  return flow ? escapeUnprintable(countAtoms(flow)) : 'running'
}

function countAtoms({ atoms, run }: FlowDetail): string {
  const tasks = atoms.filter(({ kind }) => kind === 'task')
  const done = tasks.filter(({ state }) => state === 'SUCCESS' || state === 'IGNORE').length
  const busy = tasks.filter(({ state }) => state === 'RUNNING' || state === 'REVERTING')
  const names = busy.map(({ name, state, meta }) => {
    const progress = typeof meta['progress'] === 'number' ? ` ${Math.round(meta['progress'] * 100)}%` : ''
    return `${state === 'REVERTING' ? 'reverting ' : ''}${name}${progress}`
  })
  const now = names.length > 0 ? `: ${names.join(', ')}` : ''
  return `run ${run}, ${done} of ${tasks.length} tasks done${now}`
}
