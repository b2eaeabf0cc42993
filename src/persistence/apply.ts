/** The initial state of a flow's record, and the effect of transitions on it. */
import { FlowRecord, type RecordedTransition } from './flow-record.ts'
import type { FlowDetail } from './models.ts'
import type { AcquireRequest, FlowRequest } from './persistence.ts'

/** Returns the flow after these transitions; the given flow is not changed. */
export function applyTransitions(flow: FlowDetail, transitions: Iterable<RecordedTransition>): FlowDetail {
  const image = new FlowRecord(flow)
  for (const transition of transitions) image.apply(transition)
  return image.detail
}

/** Returns a flow that was never acquired: its run is 0, below every real run. */
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

/** Returns the flow with which a run starts: the predecessor's flow, or a new one, with this run as its only writer. */
export function toAcquiredFlow(predecessor: FlowDetail | undefined, request: AcquireRequest, at: Date): FlowDetail {
  const { run, claim } = request
  return { ...(predecessor ?? createFlowDetail(request, at)), run, claim, updatedAt: at }
}
