/** What flows begin with, and what becomes of them. */
import { FlowRecord, type RecordedTransition } from './flow-record.ts'
import type { FlowDetail } from './models.ts'
import type { AcquireRequest, FlowRequest } from './persistence.ts'

/** The flow after these transitions; the one given stays as it is. */
export function applyTransitions(flow: FlowDetail, transitions: Iterable<RecordedTransition>): FlowDetail {
  const image = new FlowRecord(flow)
  for (const transition of transitions) image.apply(transition)
  return image.detail
}

/** A flow that nobody has acquired: its run is 0, below every run there is. */
export function createFlowDetail({ flow, meta = {} }: FlowRequest, at: Date): FlowDetail {
  const { uuid, name, version } = flow
  const states = [{ state: 'PENDING', at, run: 0 }] as const
  return {
    uuid,
    name,
    version,
    state: 'PENDING',
    meta,
    run: 0,
    claim: '',
    atoms: [],
    states,
    createdAt: at,
    updatedAt: at,
  }
}

/** What a run starts from: the flow as its predecessor left it, or a new one, with this run as its only writer. */
export function toAcquiredFlow(predecessor: FlowDetail | undefined, request: AcquireRequest, at: Date): FlowDetail {
  const { run, claim } = request
  return { ...(predecessor ?? createFlowDetail(request, at)), run, claim, updatedAt: at }
}
