/** Writes the picture of a flow as an SVG file, which shows itself in a browser, light or dark. */
import type { AtomState } from '../../core/states.ts'
import type { FlowOutline } from '../compile/outline.ts'
import type { AnyFlow } from '../patterns/flow.ts'
import { layoutFlow } from './layout.ts'
import type { LaidEdge, LaidNode } from './placement.ts'
import { type DrawOptions, STATE_COLORS, type StatesOfAtoms } from './text-diagrams.ts'

/**
 * Returns the flow as an SVG file, coloured by the states of its atoms if they are given. The title of a node has its state, too.
 *
 * @throws InvalidArgument for a flow with more than 2,000 nodes to draw
 * @example await writeFile('hello.svg', await toSvg(hello, { states: { greet: 'SUCCESS' } }))
 */
export async function toSvg(flow: AnyFlow | FlowOutline, { states = {} }: DrawOptions = {}): Promise<string> {
  const layout = await layoutFlow(flow)
  const { width, height, nodes, edges } = layout
  const title = `flow ${layout.flow} ${layout.version}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}">`,
    `<title>${escapeXml(title)}</title>`,
    STYLE,
    '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="end" d="M0 0 8 4 0 8z"/></marker></defs>',
    ...edges.map(toPath),
    ...nodes.map((node) => toShape(node, stateOf(node, states))),
    '</svg>',
    '',
  ].join('\n')
}

const STYLE = `<style>
text{font:13px ui-monospace,monospace;text-anchor:middle;dominant-baseline:central;fill:#000}
.node{fill:#fff;stroke:#555}.flow{stroke-dasharray:2 2}.isolated{stroke-width:2.5}.point,.end{fill:#555}
.edge{fill:none;stroke:#555}.decided{stroke-dasharray:5 4}
${Object.entries(STATE_COLORS)
  .map(([state, color]) => `.${state}{fill:${color}}`)
  .join('')}
@media(prefers-color-scheme:dark){.edge{stroke:#aaa}.point,.end{fill:#aaa}}
</style>`

/** The states by precedence: a collapsed flow shows the first state in this list that one of its atoms has. */
const SHOWN_FIRST: readonly AtomState[] = [
  'REVERT_FAILURE',
  'FAILURE',
  'RUNNING',
  'REVERTING',
  'RETRYING',
  'REVERTED',
  'PENDING',
  'SUCCESS',
  'IGNORE',
]

function stateOf({ name, atoms }: LaidNode, states: StatesOfAtoms): AtomState | undefined {
  const read = (atom: string) => (Object.hasOwn(states, atom) ? states[atom] : undefined)
  if (atoms) return SHOWN_FIRST.find((state) => atoms.some((atom) => read(atom) === state))
  return name === undefined ? undefined : read(name)
}

function toPath({ points, kind }: LaidEdge): string {
  const line = points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${x} ${y}`).join(' ')
  return `<path class="edge ${kind}" marker-end="url(#end)" d="${line}"/>`
}

function toShape(node: LaidNode, state: AtomState | undefined): string {
  const { kind, label = '', name = '', x, y, width, height, atoms, isolated } = node
  if (kind === 'point') return `<circle class="point" cx="${x}" cy="${y}" r="${width / 2}"/>`
  const kinds = ['node', kind, isolated ? 'isolated' : '', state ?? ''].filter((word) => word !== '').join(' ')
  const facts = [name, atoms ? `${atoms.length} atoms` : '', state ?? ''].filter((fact) => fact !== '').join(', ')
  const [left, top] = [x - width / 2, y - height / 2]
  const shape =
    kind === 'retry'
      ? `<path class="${kinds}" d="M${left} ${y} ${left + 10} ${top} ${left + width - 10} ${top} ${left + width} ${y} ${left + width - 10} ${top + height} ${left + 10} ${top + height}z"/>`
      : `<rect class="${kinds}" x="${left}" y="${top}" width="${width}" height="${height}" rx="6"/>`
  return `<g><title>${escapeXml(facts)}</title>${shape}<text x="${x}" y="${y}">${escapeXml(label)}</text></g>`
}

/** Escapes a text for XML. Characters that XML cannot hold, not even escaped, are replaced: one of them would make the file unreadable. */
function escapeXml(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
