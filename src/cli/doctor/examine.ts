/** All checks of the doctor, in the order in which they depend on each other. */
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { JobBoard } from '../../board/index.ts'
import { AccessDenied, NotFound, UnsupportedCapability } from '../../core/errors.ts'
import { toMilliseconds } from '../../core/time.ts'
import { parseUri } from '../../core/uri.ts'
import type { CliContext } from '../context.ts'
import {
  boardUri,
  DEFAULT_TIMEOUT,
  parseDuration,
  persistenceUri,
  type SharedOptions,
} from '../input/shared-options.ts'
import { credentials, openLogbooks, openNamedBoard } from '../opening.ts'
import { oneLine } from '../output/output.ts'
import { errorFinding, type Finding, okFinding, RIGHTS_ADVICE, warningFinding } from './finding.ts'

export interface Examination {
  readonly options: SharedOptions
  readonly context: CliContext
  /** The age in milliseconds from which on a claim is examined. */
  readonly stuckAfter: number
}

/**
 * Yields the findings. Does not throw for problems of the servers: they are findings.
 *
 * @throws InvalidArgument for options and URIs
 */
export async function* examine(examination: Examination): AsyncGenerator<Finding, void, undefined> {
  yield* examineBoard(examination)
  yield* examineLogbooks(examination)
}

async function* examineBoard({ options, context, stuckAfter }: Examination): AsyncGenerator<Finding> {
  const uri = boardUri(options, context)
  const { scheme, printable } = parseUri(uri, 'board')
  yield* await examineServersOf(uri, { what: 'board', options, context })
  try {
    await using opened = await openNamedBoard(options, context, { create: false })
    yield okFinding('board', `${printable} can be opened`)
    yield* await examineInside(uri, { what: 'board', options, context })
    const { board, unreadable } = opened
    yield* await examineJobsOf({ board, unreadable, stuckAfter })
    yield* await examineRecordsOf(board)
  } catch (problem) {
    yield unreachableFinding('board', problem, scheme)
    if (isAccessDenied(problem)) yield* await examineInside(uri, { what: 'board', options, context })
  }
}

async function* examineLogbooks({ options, context }: Examination): AsyncGenerator<Finding> {
  const uri = persistenceUri(options, context)
  if (uri === undefined) {
    const advice = 'name them with --persistence URI, as for the conductors, to have them examined'
    yield warningFinding('logbooks', 'no logbooks were named', advice)
    return
  }
  const { scheme, printable, path } = parseUri(uri, 'persistence')
  if (uri !== options.board) yield* await examineServersOf(uri, { what: 'persistence', options, context })
  try {
    await using logbooks = await openLogbooks(options, context, { missing: 'throw' })
    for await (const _ of logbooks?.persistence.listBooks({ limit: 1 }) ?? []) break
    yield okFinding('logbooks', `${printable} can be read`)
    yield* await examineInside(uri, { what: 'persistence', options, context })
    if (scheme === 'directory') yield* await toFolderPath(resolve(path))
  } catch (problem) {
    if (scheme === 'directory' && (await isFile(resolve(path))))
      yield errorFinding('logbooks', `${path} is a file`, 'name a folder of this machine')
    else
      yield problem instanceof NotFound
        ? warningFinding('logbooks', oneLine(problem), 'the first conductor that uses them creates them')
        : unreachableFinding('logbooks', problem, scheme)
  }
}

function unreachableFinding(about: string, problem: unknown, scheme: string): Finding {
  const advice = isAccessDenied(problem)
    ? RIGHTS_ADVICE
    : scheme.startsWith('directory')
      ? folderAdvice(problem)
      : 'see the servers above, and the URI'
  return errorFinding(about, oneLine(problem), advice)
}

/** Whether the server answers, and refuses this client. */
function isAccessDenied(problem: unknown): boolean {
  return problem instanceof AccessDenied || Object(problem).code === 'JOBBOARD_ZOOKEEPER_NO_AUTH'
}

function folderAdvice(problem: unknown): string {
  const text = String(problem)
  return /permission|EACCES|EPERM/i.test(text)
    ? "run as the folder's owner, or give this user the right to read, write and enter it"
    : 'name a folder of this machine'
}

interface ExaminationTarget {
  readonly what: 'board' | 'persistence'
  readonly options: SharedOptions
  readonly context: CliContext
}

/** Examines the servers as far as that is possible without authentication. */
async function examineServersOf(uri: string, { what, options, context }: ExaminationTarget): Promise<Finding[]> {
  const timeout = parseTimeout(options)
  // A Redis that does not answer also keeps the board from being opened, and is reported there.
  if (/^rediss?(\+\w+)?:/i.test(uri))
    return (await import('./redis.ts')).examineRedis(uri, { timeout }).catch((): Finding[] => [])
  if (!/^zookeepers?:/i.test(uri)) return []
  const { examineServers } = await import('./zookeeper.ts')
  return examineServers({ uri, what, security: credentials(what, context), timeout })
}

async function examineInside(uri: string, { what, options, context }: ExaminationTarget): Promise<Finding[]> {
  const timeout = parseTimeout(options)
  if (/^zookeepers?:/i.test(uri)) {
    const { examineNode } = await import('./zookeeper.ts')
    return examineNode({ uri, what, security: credentials(what, context), timeout })
  }
  if (!/^postgres(ql)?:/i.test(uri)) return []
  return (await import('./postgres.ts')).examinePostgres(uri, { what, timeout })
}

async function examineJobsOf(examined: Parameters<typeof import('./jobs.ts')['examineJobs']>[0]): Promise<Finding[]> {
  return (await import('./jobs.ts')).examineJobs(examined)
}

/** Examines schedules, limits, settings of flows and batches; a board that cannot have them has no findings. */
async function examineRecordsOf(board: JobBoard): Promise<Finding[]> {
  const [{ examineSchedules }, { examineLimits }, { examineFlowSettings }, { examineBatches }] = await Promise.all([
    import('./schedules.ts'),
    import('./limits.ts'),
    import('./flow-settings.ts'),
    import('./batches.ts'),
  ])
  const found = [examineSchedules, examineLimits, examineFlowSettings, examineBatches].map((examine) =>
    examine(board).catch((error: unknown): Finding[] => {
      if (error instanceof UnsupportedCapability) return []
      throw error
    }),
  )
  return (await Promise.all(found)).flat()
}

async function toFolderPath(path: string): Promise<Finding[]> {
  return (await import('./directory.ts')).examineDirectory(path)
}

async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  return found?.isFile() ?? false
}

function parseTimeout({ timeout }: SharedOptions): number {
  return toMilliseconds(parseDuration(timeout ?? DEFAULT_TIMEOUT, '--timeout'), '--timeout')
}
