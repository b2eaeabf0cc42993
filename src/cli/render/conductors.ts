/** Conductors as a table. */
import type { ConductorView } from '../conductor-view.ts'
import { age } from './age.ts'
import type { Screen } from './jobs.ts'
import { type Column, table } from './table.ts'

export function conductorsTable(conductors: readonly ConductorView[], { width, now }: Screen): string[] {
  const columns: readonly Column<ConductorView>[] = [
    { title: 'NAME', of: ({ name }) => name, min: 12 },
    { title: 'STATE', of: ({ state }) => state },
    { title: 'RUNS', of: ({ running, concurrency }) => [running ?? '?', concurrency ?? '?'].join('/') },
    { title: 'SIZES', of: ({ sizes }) => sizes?.join(', ') ?? 'all', optional: true },
    { title: 'FLOWS', of: ({ flows }) => flows?.join(', '), min: 12 },
    { title: 'HOST', of: ({ host }) => host, min: 8, optional: true },
    { title: 'PID', of: ({ pid }) => pid?.toString(), optional: true },
    { title: 'UP', of: ({ startedAt }) => startedAt && age(startedAt, now), optional: true },
    { title: 'RELEASE', of: ({ version }) => version, optional: true },
  ]
  return table(columns, conductors, width)
}
