/** The routes of the pictures of flows. The layout is computed here, once for each structure; the page colours it by the states of the atoms. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { JobBoard, ListedFlow } from '../../board/index.ts'
import { encodePlain } from '../../core/codec.ts'
import { NotFound } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { type FlowLayout, layoutFlow } from '../../flow/index.ts'
import { workView } from '../../views/index.ts'
import { type FoundJob, findJob } from '../boards/job-detail.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import { picture } from '../wire/picture.ts'
import { boardOf, uuidOf } from './board-of.ts'
import { defineRoute, type Route } from './route.ts'

/** The most layouts that are cached. Each takes some kilobytes of memory, and some milliseconds to compute. */
const MAX_KEPT = 200

const layouts = new WeakMap<JobBoard, Map<string, Promise<FlowLayout>>>()

export const PICTURES: readonly Route[] = [
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/flows/picture', summary: 'The picture of a flow' },
    // The name is in the query, because a flow may be named `..`.
    ...{
      query: z.object({ name: z.string().max(10_000), version: z.string().max(1_000).optional() }),
      answer: picture,
    },
    handle: async (call) => {
      const viewed = boardOf(call)
      await viewed.touch()
      return drawFlow(viewed, { name: call.query.name, version: call.query.version })
    },
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/jobs/:uuid/picture', summary: 'The picture of the flow of a job' },
    answer: picture,
    handle: async (call) => {
      const viewed = boardOf(call)
      const found = await findJob(viewed, uuidOf(call))
      const { flow, version } = flowOf(found)
      if (flow === undefined) throw new NotFound(`job ${uuidOf(call)} names no flow; there is nothing to draw`)
      return drawFlow(viewed, { name: flow, version })
    },
  }),
]

interface FlowName {
  readonly name: string
  readonly version: string | undefined
}

/** Draws a flow that a conductor has published, in this version or in the newest. @throws NotFound */
async function drawFlow(viewed: ViewedBoard, { name, version }: FlowName): Promise<FlowLayout> {
  const read = () => viewed.board.flows()
  const flows = await viewed.cache.get('outlines', { minAgeMs: 2_000, maxAgeMs: 10_000 }, read)
  const named = flows.filter((flow) => flow.name === name)
  const outline = named.find((flow) => flow.version === version) ?? named.at(-1)
  if (!outline) throw new NotFound(`no conductor of board ${viewed.name} has had flow ${name}`)
  return layOut(viewed, outline)
}

function layOut({ board }: ViewedBoard, outline: ListedFlow): Promise<FlowLayout> {
  const kept = layouts.get(board) ?? new Map<string, Promise<FlowLayout>>()
  layouts.set(board, kept)
  // The stored digest is not the key: a record with the digest of another flow would replace the picture of that flow.
  const key = createHash('sha256').update(encodePlain(outline, 'msgpack')).digest('base64url')
  const known = kept.get(key)
  if (known) return known
  const [oldest] = kept.keys()
  if (oldest !== undefined && kept.size >= MAX_KEPT) kept.delete(oldest)
  const made = layoutFlow(outline)
  kept.set(key, made)
  made.catch(() => kept.delete(key))
  return made
}

/** Returns the flow of a job, in the version with which it was started. */
function flowOf(found: FoundJob): { readonly flow?: string | undefined; readonly version?: string | undefined } {
  switch (found.place) {
    case 'board':
      return workView(found.job)
    case 'trash': {
      const version = found.record?.flow.version
      return { ...workView(found.trashed), ...defined({ version }) }
    }
    case 'logbook':
      return { flow: found.record.flow.name, version: found.record.flow.version }
    case 'history':
      return { flow: found.ended.flow }
  }
}
