/** Writes a flow as text that other programs draw: as Mermaid, which Markdown viewers show, or as DOT for Graphviz. */
import type { AtomState } from '../../core/states.ts'
import { type FlowOutline, toOutline } from '../compile/outline.ts'
import type { AnyFlow } from '../patterns/flow.ts'

/** The states of atoms by their names, as a logbook has them. */
export type StatesOfAtoms = Readonly<Record<string, AtomState>>

export interface DrawOptions {
  /** The states by which the atoms are coloured. */
  readonly states?: StatesOfAtoms | undefined
}

/** The fill colours of the states; black text is readable on each. */
export const STATE_COLORS: Readonly<Record<AtomState, string>> = {
  PENDING: '#eeeeee',
  RUNNING: '#9ecbff',
  SUCCESS: '#a6e3a1',
  FAILURE: '#ff9e9e',
  REVERTING: '#ffd59e',
  REVERTED: '#e8d9b5',
  REVERT_FAILURE: '#ff6b6b',
  IGNORE: '#ffffff',
  RETRYING: '#d7b8ff',
}

interface DrawnNode {
  readonly id: string
  /** The name of the atom; undefined for a join. */
  readonly label: string | undefined
  readonly retry: boolean
  readonly state: AtomState | undefined
}

interface DrawnEdge {
  readonly from: string
  readonly to: string
  readonly decided: boolean
}

/**
 * Returns the flow as a Mermaid diagram, coloured by the states of its atoms if they are given.
 *
 * @example console.log(toMermaid(hello, { states: { greet: 'SUCCESS', print: 'RUNNING' } }))
 */
export function toMermaid(flow: AnyFlow | FlowOutline, options: DrawOptions = {}): string {
  const { shapes, arrows } = toPicture(flow, options)
  const used = new Set(shapes.flatMap(({ state }) => state ?? []))
  return [
    'flowchart TD',
    ...shapes.map(toMermaidNode),
    ...arrows.map(({ from, to, decided }) => `  ${from} ${decided ? '-. decides .->' : '-->'} ${to}`),
    ...[...used].map((state) => `  classDef ${state} fill:${STATE_COLORS[state]},stroke:#555555,color:#000000`),
    '',
  ].join('\n')
}

/** Returns the flow as a DOT graph for Graphviz. @example `dot -Tsvg` draws the result. */
export function toDot(flow: AnyFlow | FlowOutline, options: DrawOptions = {}): string {
  const { shapes, arrows } = toPicture(flow, options)
  return [
    `digraph ${quoteDot(flow.name)} {`,
    '  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="sans-serif"]',
    ...shapes.map(toDotNode),
    ...arrows.map(({ from, to, decided }) => `  ${from} -> ${to}${decided ? ' [style=dashed, label="decides"]' : ''}`),
    '}',
    '',
  ].join('\n')
}

function toPicture(flow: AnyFlow | FlowOutline, { states }: DrawOptions): { shapes: DrawnNode[]; arrows: DrawnEdge[] } {
  const { nodes } = toOutline(flow)
  const shapes = nodes.map(({ name, kind }, index): DrawnNode => {
    const state = name !== undefined && states && Object.hasOwn(states, name) ? states[name] : undefined
    return { id: `n${index}`, label: name, retry: kind === 'retry', state }
  })
  const arrows = nodes.flatMap(({ next = [], decides = [] }, index) =>
    next.map((to): DrawnEdge => ({ from: `n${index}`, to: `n${to}`, decided: decides.includes(to) })),
  )
  return { shapes, arrows }
}

function toMermaidNode({ id, label, retry, state }: DrawnNode): string {
  if (label === undefined) return `  ${id}(( ))`
  // Mermaid's escapes for characters that would end the text.
  const text = `"${label.replaceAll('#', '#35;').replaceAll('"', '#quot;').replaceAll('\n', ' ')}"`
  return `  ${id}${retry ? `{{${text}}}` : `[${text}]`}${state ? `:::${state}` : ''}`
}

function toDotNode({ id, label, retry, state }: DrawnNode): string {
  if (label === undefined) return `  ${id} [shape=point]`
  const facts = [`label=${quoteDot(label)}`]
  if (retry) facts.push('shape=hexagon')
  if (state) facts.push(`fillcolor="${STATE_COLORS[state]}"`, `tooltip="${state}"`)
  return `  ${id} [${facts.join(', ')}]`
}

function quoteDot(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`
}
