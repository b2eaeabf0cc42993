/** The flow for the child processes of `--isolate`, which import this module. The URL carries the flow's name. */
import type { ConductorPool } from 'jobboard'
import { archiveFlow } from './flow.ts'

export const flow = archiveFlow(new URL(import.meta.url).searchParams.get('flow') ?? 'archive')

/** Returns the pool whose children run every task of the flow. @param name the name of the flow */
export function archivePool(name: string): ConductorPool {
  return { module: new URL(`?flow=${encodeURIComponent(name)}`, import.meta.url), isolate: 'all' }
}
