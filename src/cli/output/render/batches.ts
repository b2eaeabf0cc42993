/** Batches for people: a table, and one of them. */
import type { BatchView } from '../../../board/index.ts'
import { formatAge } from '../../../views/index.ts'
import { type Screen, stateTone } from './paint.ts'
import { type Column, factLines, renderTable } from './table.ts'
import { escapeUnprintable, toPrintableJson } from './text.ts'

export function batchesTable(batches: readonly BatchView[], screen: Screen): string[] {
  const columns: readonly Column<BatchView>[] = [
    { title: 'UUID', value: ({ uuid }) => uuid },
    { title: 'NAME', value: ({ name }) => name, min: 16 },
    { title: 'STATE', value: ({ state }) => state, tone: ({ state }) => stateTone(state) },
    { title: 'DONE', value: ({ done, total }) => `${done}/${total}` },
    { title: 'FAILED', value: ({ failed }) => String(failed) },
    { title: 'OPEN', value: ({ open }) => String(open) },
    { title: 'AGE', value: ({ createdAt }) => formatAge(createdAt, screen.now) },
    { title: 'BY', value: ({ who }) => who, min: 8, optional: true },
  ]
  return renderTable(columns, batches, screen)
}

export function batchLines(batch: BatchView, screen: Screen): string[] {
  const { uuid, name, state, total, done, failed, open, createdAt, endedAt, who, reason, generation, meta } = batch
  const head = `${escapeUnprintable(`batch ${uuid}  ${name}`)}  ${screen.paint(state, stateTone(state))}`
  return [
    head,
    ...factLines([
      ['jobs', `${total}: ${done} done, ${failed} failed, ${open} open`],
      ['created', `${createdAt.toISOString()} by ${who}`],
      ['ended', endedAt?.toISOString()],
      ['reason', reason],
      ['opened', generation === 1 ? undefined : `${generation} times`],
      ['meta', Object.keys(meta).length === 0 ? undefined : toPrintableJson(meta)],
    ]),
  ]
}
