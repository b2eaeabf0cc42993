/** Flows and atoms for tests of logbooks. */
import type { AcquireRequest, AtomDetail, LogBook } from '../../src/persistence/index.ts'

/** A flow alone in a book of its own, as run `run` of a claim. */
export function requestOf(uuid: string, run: number, claim = `claim of run ${run}`): AcquireRequest {
  return { book: { uuid, name: 'book' }, flow: { uuid, name: 'flow', version: '1.0' }, run, claim }
}

export function atom(name: string, more: Partial<AtomDetail> = {}): AtomDetail {
  return {
    name,
    kind: 'task',
    version: '1.0',
    state: 'SUCCESS',
    intention: 'EXECUTE',
    meta: {},
    updatedAt: new Date(1_700_000_000_123),
    ...more,
  }
}

export function atomNames(book: LogBook): string[] {
  return book.flows.flatMap((flow) => flow.atoms.map(({ name }) => name))
}

/** An atom as it was written, without what the logbook adds. */
export function written({ createdAt: _made, states: _past, ...atom }: AtomDetail): AtomDetail {
  return atom
}
