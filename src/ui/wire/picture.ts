/** A flow with the places of its parts, computed on the server; the page draws it and colours it by the states of the atoms. */
import { z } from 'zod'

export const pictureNode = z.object({
  id: z.string(),
  /** Absent for a point in which edges meet. */
  name: z.string().optional(),
  /** The name as far as it fits into the node; absent for a point. */
  label: z.string().optional(),
  kind: z.enum(['task', 'retry', 'flow', 'point']),
  /** The name of the inner flow that has it. */
  flow: z.string().optional(),
  isolated: z.boolean().optional(),
  /** The names of the atoms that it stands for, where an inner flow is drawn as one node. */
  atoms: z.array(z.string()).optional(),
  /** The centre, and the size, in pixels at scale 1. */
  x: z.number(),
  y: z.number(),
  width: z.number(),
  height: z.number(),
})

export const pictureEdge = z.object({
  from: z.string(),
  to: z.string(),
  /** `decided`: a decider decides whether `to` is run. */
  kind: z.enum(['next', 'decided']),
  points: z.array(z.tuple([z.number(), z.number()])),
})

export const picture = z.object({
  flow: z.string(),
  version: z.string(),
  digest: z.string(),
  width: z.number(),
  height: z.number(),
  nodes: z.array(pictureNode),
  edges: z.array(pictureEdge),
  /** Whether inner flows are drawn as one node, because there are more than 500 atoms. */
  collapsed: z.boolean(),
})
export type WirePicture = z.infer<typeof picture>
