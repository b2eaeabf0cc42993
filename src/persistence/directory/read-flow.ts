/** Reading a flow while others acquire it, write to it and remove what is old. */
import { join } from 'node:path'
import type { FlowDetail } from '../models.ts'
import { readIfThere } from './files.ts'
import { readFlow } from './records.ts'
import { compareTerms, listTerms, type Term, type TermFile } from './terms.ts'

/**
 * The flow as the newest log tells it, or the newest of those before a term; undefined where no log is there, because
 * nobody acquired the flow or whoever did died over it.
 *
 * Logs vanish under a reader when a newer one is there; then it looks again. A listing that runs beside such a change may
 * show neither of the two, so "no log" is believed only when two listings in a row agree.
 */
export async function readNewestFlow(folder: string, options: { before?: Term } = {}): Promise<FlowDetail | undefined> {
  const { before } = options
  let empty: string | undefined
  for (;;) {
    const files = (await listTerms(folder)).filter(({ term }) => !before || compareTerms(term, before) < 0)
    const log = files.findLast(({ kind }) => kind === 'log')
    if (log) {
      const path = join(folder, log.name)
      const bytes = await readIfThere(path)
      if (bytes) return readFlow(bytes, path)
    } else {
      const seen = namesOf(files)
      if (seen === empty) return undefined
      empty = seen
    }
  }
}

function namesOf(files: readonly TermFile[]): string {
  return files.map(({ name }) => name).join('/')
}
