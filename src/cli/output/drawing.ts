/** Draws flows in the formats of the command line. */
import type { AnyFlow, FlowOutline, StatesOfAtoms } from '../../flow/index.ts'
import type { GraphFormat } from '../input/choices.ts'

/** Returns the drawing, without a line end. @throws InvalidArgument for a flow that is too large for SVG */
export async function drawAs(
  format: GraphFormat,
  flow: AnyFlow | FlowOutline,
  options: { readonly states?: StatesOfAtoms } = {},
): Promise<string> {
  const { toDot, toMermaid, toSvg } = await import('../../flow/index.ts')
  if (format === 'svg') return (await toSvg(flow, options)).trimEnd()
  return (format === 'dot' ? toDot(flow, options) : toMermaid(flow, options)).trimEnd()
}
