/** Draws the picture of a flow, coloured by the states of its atoms. The server has computed the positions. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { WirePicture } from '../../wire/picture.ts'
import { clip, visible } from '../state/format.ts'
import { texts } from '../texts.ts'
import { Warning } from './notices.tsx'
import { SIGNS, stateClass } from './text.tsx'

type Node = WirePicture['nodes'][number]
type Edge = WirePicture['edges'][number]

const MARGIN = 8
const LETTER_WIDTH = 7
const ARROW = 6
/** A picture that is no wider is never made smaller on screens for desks. */
const MAX_PLAIN_WIDTH = 600

export interface PictureProps {
  readonly picture: WirePicture
  /** The states of atoms by name. */
  readonly states?: ReadonlyMap<string, string>
}

export function Picture({ picture, states = new Map() }: PictureProps): JSX.Element {
  const [isWhole, setWhole] = useState(true)
  const { width, height, nodes, edges, collapsed } = picture
  const box = `${-MARGIN} ${-MARGIN} ${width + 2 * MARGIN} ${height + 2 * MARGIN}`
  const atoms = nodes.filter(({ kind }) => kind !== 'point').length
  return (
    <figure class="picture">
      {collapsed && <Warning>{texts.picture.collapsed}</Warning>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reached by keyboard */}
      <section class={isWhole ? 'canvas whole' : 'canvas'} tabIndex={0} aria-label={texts.picture.region}>
        <svg
          viewBox={box}
          width={width + 2 * MARGIN}
          height={height + 2 * MARGIN}
          role="img"
          aria-label={texts.picture.label(atoms)}
        >
          {edges.map((edge, index) => (
            <EdgeShape key={index} edge={edge} />
          ))}
          {nodes.map((node) => (
            <NodeShape key={node.id} node={node} state={stateOf(node, states)} />
          ))}
        </svg>
      </section>
      <figcaption>
        {width > MAX_PLAIN_WIDTH && (
          <button type="button" class="small" onClick={() => setWhole(!isWhole)}>
            {isWhole ? texts.picture.actual : texts.picture.whole}
          </button>
        )}{' '}
        {texts.picture.caption}
      </figcaption>
    </figure>
  )
}

/** The states of atoms, the most urgent first. */
const URGENCY: readonly string[] = [
  'FAILURE',
  'REVERT_FAILURE',
  'RUNNING',
  'RETRYING',
  'REVERTING',
  'REVERTED',
  'PENDING',
  'SUCCESS',
]

/** Returns the state of a part; for an inner flow that is drawn as one, the most urgent of its atoms'. */
function stateOf({ name, atoms }: Node, states: ReadonlyMap<string, string>): string | undefined {
  if (atoms === undefined) return name === undefined ? undefined : states.get(name)
  const inside = atoms.flatMap((atom) => states.get(atom) ?? [])
  return URGENCY.find((state) => inside.includes(state)) ?? inside[0]
}

function NodeShape({ node, state }: { node: Node; state: string | undefined }): JSX.Element {
  const { x, y, width, height, kind, isolated, label } = node
  if (kind === 'point') return <circle class="point" cx={x} cy={y} r={4} />
  const name = visible(node.name ?? '')
  // A part that has not begun has no sign.
  const sign = (state === 'PENDING' ? undefined : SIGNS[state ?? '']) ?? (kind === 'retry' ? '↻' : '')
  const classes = ['node', kind, isolated && 'isolated', stateClass(state ?? 'none')].filter(Boolean).join(' ')
  return (
    <g class={classes}>
      <title>{texts.picture.node(clip(name, 500), state)}</title>
      <rect x={x - width / 2} y={y - height / 2} width={width} height={height} rx={kind === 'retry' ? height / 2 : 5} />
      <text class="sign" x={x - width / 2 + 9} y={y}>
        {sign}
      </text>
      <text x={sign === '' ? x : x + 6} y={y}>
        {visible(label ?? clip(name, Math.max(4, Math.floor((width - 28) / LETTER_WIDTH))))}
      </text>
    </g>
  )
}

function EdgeShape({ edge: { points, kind } }: { edge: Edge }): JSX.Element | null {
  const [end, before] = [points.at(-1), points.at(-2)]
  if (end === undefined || before === undefined) return null
  // Drawn here rather than as a marker: the address of a marker would be taken relative to the base of the page.
  const angle = Math.atan2(end[1] - before[1], end[0] - before[0])
  const corner = (turn: number): string => {
    return `${end[0] - ARROW * Math.cos(angle + turn)},${end[1] - ARROW * Math.sin(angle + turn)}`
  }
  return (
    <g class={`edge ${kind}`}>
      <polyline points={points.map((point) => point.join(',')).join(' ')} />
      <polygon points={`${end.join(',')} ${corner(0.45)} ${corner(-0.45)}`} />
    </g>
  )
}
