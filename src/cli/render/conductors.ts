/** Conductors as a table. */
import type { ConductorView } from '../conductor-view.ts'
import { age } from './age.ts'
import { toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, table } from './table.ts'

export function conductorsTable(conductors: readonly ConductorView[], screen: Screen): string[] {
  const columns: readonly Column<ConductorView>[] = [
    { title: 'NAME', of: ({ name }) => name, min: 12 },
    { title: 'STATE', of: ({ state }) => state, tone: ({ state }) => toneOf(state) },
    { title: 'RUNS', of: ({ running, concurrency }) => [running ?? '?', concurrency ?? '?'].join('/') },
    { title: 'SIZES', of: ({ sizes }) => sizes?.join(', ') ?? 'all', optional: true },
    { title: 'FLOWS', of: flowsOf, min: 12 },
    { title: 'HOST', of: ({ host }) => host, min: 8, optional: true },
    { title: 'PID', of: ({ pid }) => pid?.toString(), optional: true },
    { title: 'UP', of: ({ startedAt }) => startedAt && age(startedAt, screen.now), optional: true },
    { title: 'RELEASE', of: ({ version }) => version, optional: true },
  ]
  return table(columns, conductors, screen)
}

/** Returns the flows with their versions, as in `import 1.0, 2.0, hello 1.0`. */
function flowsOf({ flows, versions = {} }: ConductorView): string | undefined {
  return flows?.map((name) => [name, versions[name]?.join(', ')].filter(Boolean).join(' ')).join(', ')
}
