/** The part of a claim that takes resources: one step fails if another job holds a resource. `commit/transactions.ts` has the steps. */

import { NodeExists, NoNode, NotEmpty } from '../../../../zookeeper/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { toResourceWants } from '../../../model/resources.ts'
import type { TransactionPart } from '../commit/parts.ts'
import type { TouchedName, TransactionStep } from '../commit/transaction.ts'
import { permitSteps } from '../commit/transactions.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import type { ResourceNodes } from '../store/resource-nodes.ts'

/** Creates the folders of the resources that are missing, and returns the part of the claim; undefined for a job without resources. */
export async function prepareResources(
  { id, posting, what }: { readonly id: string; readonly posting: Posting; readonly what: string },
  {
    layout,
    resources,
  }: { readonly layout: ZooKeeperLayout; readonly resources: Pick<ResourceNodes, 'prepare' | 'create'> },
): Promise<TransactionPart<never> | undefined> {
  const { exclusive, shared } = toResourceWants(posting)
  if (exclusive.length + shared.length === 0) return undefined
  await resources.prepare([...exclusive, ...shared])
  const steps = permitSteps(layout, id, posting)
  const resourceOf = (refused: TransactionStep) => steps.find((step) => step === refused)?.resource
  const touch = (mode: TouchedName['mode']) => (name: string) => ({ name: `resource ${name}`, mode })
  return {
    steps,
    touches: [...exclusive.map(touch('alone')), ...shared.map(touch('together'))],
    // A folder may have been swept since it was last seen.
    repair: (step, error) => {
      const resource = error instanceof NoNode ? resourceOf(step) : undefined
      return resource === undefined ? undefined : () => resources.create(resource)
    },
    onRefused: (error, step) => {
      if (step === undefined || step === 'guard') return undefined
      const isHeld = error instanceof NotEmpty || error instanceof NodeExists
      return isHeld ? refusalError(what, { why: 'resource', resource: resourceOf(step) }, error) : undefined
    },
  }
}
