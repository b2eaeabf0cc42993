/** Settings of flows for people: tables. */
import type { FlowSettingsView } from '../../../board/index.ts'
import { describeDeclaration, describeSettings, formatAge } from '../../../views/index.ts'
import type { Screen } from './paint.ts'
import { type Column, renderTable } from './table.ts'

/** Returns the table of what is set for flows and patterns. */
export function flowSettingsTable(settings: readonly FlowSettingsView[], screen: Screen): string[] {
  const columns: readonly Column<FlowSettingsView>[] = [
    { title: 'FLOW', value: ({ flow }) => flow, min: 12 },
    {
      title: 'SETTINGS',
      value: ({ settings = {}, error }) => error?.message ?? describeSettings(settings),
      tone: ({ settings, error }) => (error || settings?.enabled === false ? 'odd' : undefined),
      min: 20,
    },
    { title: 'SET BY', value: ({ by }) => by, optional: true },
    { title: 'SINCE', value: ({ since }) => since && formatAge(since, screen.now), optional: true },
    { title: 'DECLARED BY', value: (view) => describeDeclaration(view), optional: true },
    { title: 'REASON', value: ({ reason }) => reason },
  ]
  return renderTable(columns, settings, screen)
}

/** A setting that applies to a flow, with its origin. */
export interface AppliedRow {
  readonly key: string
  readonly text: string
  readonly from: string
}

/** Returns the table of the settings that apply to one flow. */
export function appliedSettingsTable(rows: readonly AppliedRow[], screen: Screen): string[] {
  const columns: readonly Column<AppliedRow>[] = [
    { title: 'SETTING', value: ({ key }) => key, min: 16 },
    { title: 'VALUE', value: ({ text }) => text, min: 8 },
    { title: 'FROM', value: ({ from }) => from },
  ]
  return renderTable(columns, rows, screen)
}
