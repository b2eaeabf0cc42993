/** Logbooks: many as a table, one as a report. */
import type { BookReport, BookView } from '../../views/logbook-view.ts'
import { formatAge } from './age.ts'
import { factLines } from './facts.ts'
import { logbookLines } from './logbook.ts'
import { stateTone } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, renderTable } from './table.ts'
import { escapeUnprintable } from './text.ts'

export function logbooksTable(books: readonly BookView[], screen: Screen): string[] {
  const columns: readonly Column<BookView>[] = [
    { title: 'UUID', value: ({ uuid }) => uuid },
    { title: 'NAME', value: ({ name }) => name, min: 12 },
    { title: 'STATE', value: formatStates, tone: ({ flows }) => stateTone(flows[0]?.state) },
    { title: 'FLOW', value: ({ flows }) => flows.map(({ name }) => name).join(', '), min: 8, optional: true },
    { title: 'RUNS', value: ({ flows }) => flows.map(({ run }) => run).join(', '), optional: true },
    { title: 'CREATED', value: ({ createdAt }) => createdAt.toISOString(), optional: true },
    { title: 'UNCHANGED', value: ({ updatedAt }) => formatAge(updatedAt, screen.now) },
  ]
  return renderTable(columns, books, screen)
}

/** Lists each state once: a book with a thousand flows has as few states as any other. */
function formatStates({ flows }: BookView): string {
  return [...new Set(flows.map(({ state }) => state))].join(', ') || 'EMPTY'
}

export function logbookReport(book: BookReport, screen: Screen): string[] {
  const { uuid, name, createdAt, updatedAt, flows } = book
  const [only] = flows
  if (only && flows.length === 1) return logbookLines({ ...only, uuid, name, flow: only.name }, { screen })
  const facts = factLines([
    ['created', createdAt.toISOString()],
    ['updated', updatedAt.toISOString()],
    ['flows', String(flows.length)],
  ])
  const each = flows.flatMap((flow) => ['', ...logbookLines({ ...flow, flow: flow.name }, { screen, what: 'flow' })])
  return [escapeUnprintable(`logbook ${uuid}  ${name}`), ...facts, ...each]
}
