/** The settings of flows: a table of what is set for flows and patterns, and the actions on it. */
import type { JSX } from 'preact'
import type { WireFlowSettings } from '../../../wire/board.ts'
import { Action } from '../../parts/action.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded } from '../../parts/notices.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Name, Time } from '../../parts/text.tsx'
import { act } from '../../state/acting.ts'
import type { Answer, Field } from '../../state/asking.ts'
import { useReading } from '../../state/reading.ts'
import { href } from '../../state/router.ts'
import { board, onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.flowSettings

/** @param flow the flow whose settings are shown, with those of the patterns that it matches; null for all */
export function FlowSettings({ flow }: { flow: string | null }): JSX.Element | null {
  const isSupported = board.value?.supports.flowSettings ?? true
  const path = isSupported ? onBoard('flows/settings') : undefined
  const reading = useReading<{ readonly settings: readonly WireFlowSettings[] }>(path, ['flows'])
  if (!isSupported) return null
  return (
    <section>
      <div class="heading">
        <h2>{t.title}</h2>
        <div class="buttons">
          <Action needs="flow.set" onClick={() => setSettings(flow === null ? undefined : { flow })}>
            {t.set}
          </Action>
        </div>
      </div>
      <Loaded reading={reading}>
        {({ settings }) => {
          const shown = settings.filter((each) => flow === null || isFor(flow, each.flow))
          if (shown.length === 0) return <Empty>{flow === null ? t.empty : t.emptyFor}</Empty>
          return <Table label={t.title} columns={COLUMNS} rows={shown} keyOf={(each) => each.flow} />
        }}
      </Loaded>
    </section>
  )
}

function isFor(flow: string, pattern: string): boolean {
  return pattern === flow || (pattern.endsWith('*') && flow.startsWith(pattern.slice(0, -1)))
}

const COLUMNS: readonly Column<WireFlowSettings>[] = [
  {
    head: t.flow,
    kind: 'main',
    cell: ({ flow, enabled }) => (
      <>
        {flow.endsWith('*') ? (
          <Name text={flow} />
        ) : (
          <Link to={href('flows', { name: flow })} row>
            <Name text={flow} />
          </Link>
        )}{' '}
        {!enabled && <span class="tag">{texts.flows.notEnabled}</span>}
      </>
    ),
  },
  { head: t.settings, cell: (row) => <Name text={row.error ?? toWords(row)} max={500} /> },
  { head: t.by, kind: 'wide', cell: ({ by }) => by !== undefined && <Name text={by} max={60} /> },
  { head: t.since, kind: 'wide', cell: ({ since }) => since !== undefined && <Time at={since} /> },
  {
    head: t.declared,
    kind: 'widest',
    cell: ({ declared }) => declared !== undefined && <Name text={declared} max={80} />,
  },
  { head: t.reason, kind: 'wide', cell: ({ reason }) => reason !== undefined && <Name text={reason} max={400} /> },
  { head: t.actions, cell: (row) => <SettingsActions row={row} /> },
]

/** Returns the settings on one line, as they are typed: `maxAttempts=7 queue=bulk`. */
function toWords({ settings = [] }: Pick<WireFlowSettings, 'settings'>): string {
  return settings.map(({ key, text }) => `${key}=${text}`).join(' ')
}

function SettingsActions({ row }: { row: WireFlowSettings }): JSX.Element {
  return (
    <div class="buttons">
      <Action needs="flow.set" label={t.changeLabel(row.flow)} onClick={() => setSettings(row)}>
        {t.change}
      </Action>
      <Action needs="flow.unset" danger label={t.removeLabel(row.flow)} onClick={() => unsetSettings(row)}>
        {t.remove}
      </Action>
    </div>
  )
}

/** Asks for settings, and sets them. @param row the flow, with its present settings; undefined for one that is asked for, too */
function setSettings(row: Pick<WireFlowSettings, 'flow' | 'settings'> | undefined): Promise<boolean> {
  const fields: Field[] = [
    { name: 'settings', label: t.fields.settings, type: 'lines', hint: t.fields.settingsHint, required: true },
  ]
  if (row === undefined) fields.unshift({ name: 'flow', label: t.fields.flow, type: 'text', required: true })
  const present = row?.settings ? ` ${t.now(toWords(row))}` : ''
  const question = {
    title: row === undefined ? t.set : t.changeLabel(row.flow),
    ...{ text: `${t.setText}${present}`, yes: t.set, fields, reason: true },
  }
  const toBody = ({ flow, settings = '', reason }: Answer): object => {
    const words = toSettingWords(settings)
    if (words.length === 0) throw new Error(t.nothingSet)
    return { action: 'set', flow: row?.flow ?? flow ?? '', settings: words, ...(reason ? { reason } : {}) }
  }
  return act('flows/settings', question, toBody, t.setDone)
}

function unsetSettings({ flow, settings = [] }: WireFlowSettings): Promise<boolean> {
  // The parts of a back-off are removed together.
  const keys = [...new Set(settings.map(({ key }) => key.split('.')[0] ?? key))]
  const fields: Field[] = [{ name: 'keys', label: t.fields.keys, type: 'text', options: keys }]
  const question = { title: t.removeLabel(flow), text: t.removeText, yes: t.remove, danger: true, fields, reason: true }
  const toBody = ({ keys = '', reason }: Answer): object => {
    const named = keys.split(/[\s,]+/).filter((key) => key !== '')
    return { action: 'unset', flow, ...(named.length > 0 ? { keys: named } : {}), ...(reason ? { reason } : {}) }
  }
  return act('flows/settings', question, toBody, t.removeDone)
}

/** Splits what was typed into `key=value` words. A value may contain spaces: a word ends where the next one begins. */
function toSettingWords(text: string): string[] {
  return text.trim() === '' ? [] : text.trim().split(/\s+(?=[\w.]+=)/)
}
