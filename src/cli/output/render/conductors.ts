/** Conductors as a table. */
import type { ConductorView } from '../../views/conductor-view.ts'
import { formatAge } from './age.ts'
import { stateTone } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, renderTable } from './table.ts'

export function conductorsTable(conductors: readonly ConductorView[], screen: Screen): string[] {
  const columns: readonly Column<ConductorView>[] = [
    { title: 'NAME', value: ({ name }) => name, min: 12 },
    { title: 'STATE', value: ({ state }) => state, tone: ({ state }) => stateTone(state) },
    { title: 'RUNS', value: ({ running, concurrency }) => [running ?? '?', concurrency ?? '?'].join('/') },
    { title: 'SIZES', value: ({ sizes }) => sizes?.join(', ') ?? 'all', optional: true },
    { title: 'FLOWS', value: formatFlows, min: 12 },
    { title: 'HOST', value: ({ host }) => host, min: 8, optional: true },
    { title: 'PID', value: ({ pid }) => pid?.toString(), optional: true },
    { title: 'UP', value: ({ startedAt }) => startedAt && formatAge(startedAt, screen.now), optional: true },
    { title: 'RELEASE', value: ({ version }) => version, optional: true },
  ]
  return renderTable(columns, conductors, screen)
}

/** Returns the flows with their versions, as in `import 1.0, 2.0, hello 1.0`. */
function formatFlows({ flows, versions = {} }: ConductorView): string | undefined {
  return flows?.map((name) => [name, versions[name]?.join(', ')].filter(Boolean).join(' ')).join(', ')
}
