/** What tests of conductors begin with. */
import { onTestFinished } from 'vitest'
import type { JobBoard } from '../../src/board/index.ts'
import {
  type Conductor,
  type ConductorOptions,
  input,
  linear,
  openBoard,
  type Persistence,
  startConductor,
  type TrashedJob,
  task,
} from '../../src/index.ts'
import type { FlowLog } from '../../src/persistence/index.ts'

/** A conductor that is stopped when the test ends. */
export async function startTestConductor(options: ConductorOptions): Promise<Conductor> {
  const conductor = await startConductor(options)
  onTestFinished(() => {
    conductor.abort()
    return conductor.stop()
  })
  return conductor
}

let spaces = 0

/** Boards on one new place. */
export async function boards<const Who extends readonly string[]>(
  ...who: Who
): Promise<{ [I in keyof Who]: JobBoard }> {
  spaces += 1
  const opened = await Promise.all(
    who.map((name) => openBoard(`memory:conductor-${process.pid}-${spaces}`, { who: name })),
  )
  onTestFinished(async () => {
    for (const board of opened) await board.close()
  })
  return opened as { [I in keyof Who]: JobBoard }
}

export async function listTrash(board: JobBoard): Promise<TrashedJob[]> {
  const trashed: TrashedJob[] = []
  for await (const job of board.trashed()) trashed.push(job)
  return trashed
}

/** A flow of one task; `work` may be changed between runs. */
export function singleTaskFlow(name: string, execute: (args: { n: number }, signal: AbortSignal) => unknown) {
  const only = task('only', {
    requires: ['n'],
    provides: 'out',
    execute: async (args: { n: number }, { signal }) => execute(args, signal),
  })
  return linear(name, input<{ n: number }>(), only)
}

/** The persistence with some of its methods replaced. */
export function delegate(inner: Persistence, replaced: Partial<Persistence>): Persistence {
  return {
    uri: inner.uri,
    open: () => inner.open(),
    close: () => inner.close(),
    createBook: (book) => inner.createBook(book),
    updateBook: (uuid, change) => inner.updateBook(uuid, change),
    createFlow: (request) => inner.createFlow(request),
    acquire: (request) => inner.acquire(request),
    getBook: (uuid) => inner.getBook(uuid),
    listBooks: (query) => inner.listBooks(query),
    destroyBook: (uuid, options) => inner.destroyBook(uuid, options),
    [Symbol.asyncDispose]: () => inner.close(),
    ...replaced,
  }
}

/** The log with some of its methods replaced. */
export function delegateLog(inner: FlowLog, replaced: Partial<FlowLog>): FlowLog {
  return {
    flow: inner.flow,
    write: (change) => inner.write(change),
    close: () => inner.close(),
    [Symbol.asyncDispose]: () => inner.close(),
    ...replaced,
  }
}
