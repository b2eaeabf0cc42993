/** The files that users take: the alert rules and the dashboard. They are well-formed, and name metrics that there are. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { BOARD_GAUGES } from '../../src/cli/commands/exporter/board-gauges.ts'
import { INSTRUMENTS } from '../../src/core/metrics.ts'
import { ROOT } from '../support/build.ts'
import { checkRules, promtool, testRules } from '../support/promtool.ts'

const ALERTS = join(ROOT, 'docs/alerts.yml')
const DASHBOARD = join(ROOT, 'docs/grafana.json')
const KNOWN: Readonly<Record<string, { readonly labels: readonly string[] }>> = { ...INSTRUMENTS, ...BOARD_GAUGES }

/** Returns the metrics that a text names, without the parts of histograms. */
function metricsIn(text: string): string[] {
  const names = [...text.matchAll(/\bjobboard_[a-z_]+/g)].map(([name]) => name)
  return names.map((name) => (Object.hasOwn(KNOWN, name) ? name : name.replace(/_(bucket|sum|count)$/, '')))
}

const unknownIn = (text: string) => metricsIn(text).filter((name) => !Object.hasOwn(KNOWN, name))

test('the alert rules name metrics that there are', async () => {
  const text = await readFile(ALERTS, 'utf8')
  expect(metricsIn(text).length).toBeGreaterThan(10)
  expect(unknownIn(text)).toEqual([])
})

test.skipIf(!promtool)('promtool accepts the alert rules, and they fire for what they are about', async () => {
  expect(await checkRules(ALERTS)).toContain('SUCCESS: 20 rules found')
  expect(await testRules(join(import.meta.dirname, 'alerts.promtool.yml'))).toContain('SUCCESS')
})

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string }[]
}

test('the dashboard has panels of metrics that there are, and no two in one place', async () => {
  const text = await readFile(DASHBOARD, 'utf8')
  const { panels } = JSON.parse(text) as { readonly panels: readonly Panel[] }
  expect(unknownIn(text)).toEqual([])
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  for (const { type, title, targets = [] } of panels)
    if (type !== 'row') expect(metricsIn(targets.map(({ expr }) => expr).join()), title).not.toEqual([])
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
})

test('the dashboard shows every metric', async () => {
  const shown = new Set(metricsIn(await readFile(DASHBOARD, 'utf8')))
  expect(Object.keys(KNOWN).filter((name) => !shown.has(name))).toEqual([])
})

test('the guide names every metric, with its labels', async () => {
  const guide = await readFile(join(ROOT, 'docs/guides/metrics.md'), 'utf8')
  for (const [name, { labels }] of Object.entries(KNOWN)) {
    const row = guide.split('\n').find((line) => line.startsWith(`| \`${name}\``))
    expect(row, name).toBeDefined()
    for (const label of labels) expect(row, name).toContain(`\`${label}\``)
  }
})
