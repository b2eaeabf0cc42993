/** Reads a flow while others acquire it, write to it and remove its old files. */
import { join } from 'node:path'
import { StorageFailure } from '../../core/errors.ts'
import type { FlowDetail } from '../models.ts'
import { exists, readIfPresent } from './files.ts'
import { decodeFlow } from './records.ts'
import { compareTerms, listTerms, type Term, type TermFile } from './terms.ts'

/**
 * Returns the flow as the newest log has it, or as the newest log before a term has it; undefined where there is no log,
 * because the flow was not acquired or the process that acquired it died first.
 *
 * Logs vanish during a read when a newer one exists; then the reader starts again. A listing that runs beside such a
 * change may show neither of the two: it may even show only a log that a slow run linked when its successors had
 * theirs. Therefore, the log that was read is accepted only if (a) a second listing shows no newer one, and then (b) it
 * still exists. Suppose that a newer log was there when that listing began, and the listing missed it. The newest of
 * these was then removed while the listing ran, by an acquire whose own log came after it had begun; the listing of
 * that acquire showed the log that was read here, and it removed that first. (An acquire that is newer than `before`
 * may do so, too: it then refuses the run that reads this.) "No log" is accepted only when two listings in a row agree.
 *
 * @throws StorageFailure when the newest log is damaged, or its name is a link to nothing
 */
export async function readNewestFlow(folder: string, options: { before?: Term } = {}): Promise<FlowDetail | undefined> {
  let empty: string | undefined
  for (let looks = 0; ; looks++) {
    const files = await listBefore(folder, options.before)
    const log = newestLog(files)
    if (log) {
      const path = join(folder, log.name)
      const bytes = await readIfPresent(path)
      if (bytes && (await isNewest(folder, { log, ...options }))) return decodeFlow(bytes, path)
      if (!bytes && looks >= MAX_READ_ATTEMPTS) throw new StorageFailure(`${path} is a link to nothing; remove it`)
    } else {
      const seen = toNames(files)
      if (seen === empty) return undefined
      empty = seen
    }
  }
}

/**
 * The limit of reads. Each read that finds a log removed requires another acquire, so more than a few mean that the
 * folder is damaged.
 */
const MAX_READ_ATTEMPTS = 100

/** Does the checks (a) and (b), in this order. */
async function isNewest(folder: string, { log, before }: { log: TermFile; before?: Term }): Promise<boolean> {
  const newest = newestLog(await listBefore(folder, before))
  if (newest && compareTerms(newest.term, log.term) > 0) return false
  return exists(join(folder, log.name))
}

async function listBefore(folder: string, before: Term | undefined): Promise<TermFile[]> {
  return (await listTerms(folder)).filter(({ term }) => !before || compareTerms(term, before) < 0)
}

function newestLog(files: readonly TermFile[]): TermFile | undefined {
  return files.findLast(({ kind }) => kind === 'log')
}

function toNames(files: readonly TermFile[]): string {
  return files.map(({ name }) => name).join('/')
}
