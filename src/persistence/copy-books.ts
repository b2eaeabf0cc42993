/**
 * Copies logbooks from one place to another, of any backend. Each flow is acquired at the target with the run that wrote it last, so that a later run
 * continues it and an earlier one is refused. The times of the records become the times of the copy. Where both places are the same one, only the
 * meta of the books is changed.
 */
import type { BookDetail, FlowDetail, LogBook, Meta } from './models.ts'
import type { Persistence } from './persistence.ts'

export interface CopyBooksOptions {
  readonly signal: AbortSignal
  /** Returns the meta of the copy: a book names the board of its job. */
  readonly toMeta: (meta: Meta) => Meta
  /** Receives a book that cannot be read. */
  readonly onSkipped: (book: Pick<BookDetail, 'uuid' | 'name'>, error: unknown) => void
}

export interface CopiedBooks {
  readonly copied: number
  readonly skipped: number
}

/** Copies all books. A book that is there already is copied again, as far as no later run has acquired its flows. @throws StorageFailure */
export async function copyBooks(
  { from, to }: { readonly from: Persistence; readonly to: Persistence },
  { signal, toMeta, onSkipped }: CopyBooksOptions,
): Promise<CopiedBooks> {
  let [copied, skipped] = [0, 0]
  const isMove = from.uri !== to.uri
  for await (const listed of from.listBooks()) {
    signal.throwIfAborted()
    let book: LogBook
    try {
      book = await from.getBook(listed.uuid)
    } catch (error) {
      skipped += 1
      onSkipped(listed, error)
      continue
    }
    const meta = toMeta(book.meta)
    if (isMove) await copyBook({ ...book, meta }, to)
    else if (meta !== book.meta) await to.updateBook(book.uuid, { meta })
    copied += 1
  }
  return { copied, skipped }
}

async function copyBook({ flows, ...book }: LogBook, to: Persistence): Promise<void> {
  const { uuid, name, meta } = book
  await to.createBook({ uuid, name, meta })
  for (const flow of flows) await copyFlow(flow, { uuid, name, meta }, to)
}

async function copyFlow(
  { uuid, name, version, state, meta, run, claim, atoms }: FlowDetail,
  book: Pick<LogBook, 'uuid' | 'name' | 'meta'>,
  to: Persistence,
): Promise<void> {
  const flow = { uuid, name, version }
  if (run === 0) {
    await to.createFlow({ book, flow, meta })
    return
  }
  // The same claim: a copy that is run again may acquire the flow again.
  await using log = await to.acquire({ book, flow, run, claim })
  await log.write({ state, meta, atoms })
}
