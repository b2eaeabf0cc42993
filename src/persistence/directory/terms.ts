/**
 * The terms of a flow, which decide who may write it. A **term** is one acquire: its run, and how often the same claim
 * has repeated it. The newest term writes; each has its own mark and its own log, so that no process ever writes to a
 * file of another. The rules and their proof are in `acquire.ts`.
 */
import { readdir } from 'node:fs/promises'
import { parseSafeNumber } from './layout.ts'

export interface Term {
  readonly run: number
  readonly repeat: number
}

export interface TermFile {
  readonly name: string
  readonly term: Term
  readonly kind: 'mark' | 'log' | 'temporary'
}

/** Compares two terms; negative when `a` is the older. */
export function compareTerms(a: Term, b: Term): number {
  return a.run - b.run || a.repeat - b.repeat
}

export function formatTermFile({ run, repeat }: Term, kind: 'mark' | 'log'): string {
  return repeat === 0 ? `${run}.${kind}` : `${run}.${repeat}.${kind}`
}

/** Returns the files of a flow's folder, older terms first. */
export async function listTerms(folder: string): Promise<TermFile[]> {
  const files = (await readdir(folder)).map(parseTermFile).filter((file) => file !== undefined)
  return files.sort((a, b) => compareTerms(a.term, b.term))
}

/** Returns the newest term that has a mark or a log. */
export function newestTerm(files: readonly TermFile[]): Term | undefined {
  return files.findLast(({ kind }) => kind !== 'temporary')?.term
}

const TERM_FILE_PATTERN = /^(\d+)(?:\.(\d+))?\.(mark|log)(\..+)?$/

function parseTermFile(name: string): TermFile | undefined {
  const found = TERM_FILE_PATTERN.exec(name)
  if (!found) return undefined
  const [, digits = '', repeats, kind, rest] = found
  const run = parseSafeNumber(digits)
  const repeat = repeats === undefined ? 0 : parseSafeNumber(repeats)
  // A first acquire is written without its repeat.
  if (run === undefined || repeat === undefined || (repeat === 0 && repeats !== undefined)) return undefined
  return { name, term: { run, repeat }, kind: rest !== undefined ? 'temporary' : kind === 'mark' ? 'mark' : 'log' }
}
