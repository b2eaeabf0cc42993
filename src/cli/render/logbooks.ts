/** Logbooks: many as a table, one as a report. */
import type { BookReport, BookView } from '../logbook-view.ts'
import { age } from './age.ts'
import { lined } from './facts.ts'
import { logbookLines } from './logbook.ts'
import { toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, table } from './table.ts'
import { printable } from './text.ts'

export function logbooksTable(books: readonly BookView[], screen: Screen): string[] {
  const columns: readonly Column<BookView>[] = [
    { title: 'UUID', of: ({ uuid }) => uuid },
    { title: 'NAME', of: ({ name }) => name, min: 12 },
    { title: 'STATE', of: stateOf, tone: ({ flows }) => toneOf(flows[0]?.state) },
    { title: 'FLOW', of: ({ flows }) => flows.map(({ name }) => name).join(', '), min: 8, optional: true },
    { title: 'RUNS', of: ({ flows }) => flows.map(({ run }) => run).join(', '), optional: true },
    { title: 'CREATED', of: ({ createdAt }) => createdAt.toISOString(), optional: true },
    { title: 'UNCHANGED', of: ({ updatedAt }) => age(updatedAt, screen.now) },
  ]
  return table(columns, books, screen)
}

/** Each state once: a book with a thousand flows has no more of them than another. */
function stateOf({ flows }: BookView): string {
  return [...new Set(flows.map(({ state }) => state))].join(', ') || 'EMPTY'
}

export function logbookReport(book: BookReport, screen: Screen): string[] {
  const { uuid, name, createdAt, updatedAt, flows } = book
  const [only] = flows
  if (only && flows.length === 1) return logbookLines({ ...only, uuid, name, flow: only.name }, { screen })
  const facts = lined([
    ['created', createdAt.toISOString()],
    ['updated', updatedAt.toISOString()],
    ['flows', String(flows.length)],
  ])
  const each = flows.flatMap((flow) => ['', ...logbookLines({ ...flow, flow: flow.name }, { screen, what: 'flow' })])
  return [printable(`logbook ${uuid}  ${name}`), ...facts, ...each]
}
