/** The roles of boards that lack a feature. Changes are refused; reads return nothing without a request, except that batches refuse reads, too. */
import { UnsupportedCapability } from '../../core/errors.ts'
import type { BackendBatches } from './batches.ts'
import type { BackendCallerTransactions } from './caller-transactions.ts'
import type { BackendDependencies } from './dependencies.ts'
import type { BackendHistory } from './history.ts'

/** The role of a board whose jobs cannot depend on others. */
export const NO_DEPENDENCIES: BackendDependencies = {
  of: async () => ({ waitsFor: [], dependents: [] }),
}

/** The role of a board that keeps no history. */
export const NO_HISTORY: BackendHistory = {
  newest: async () => [],
  find: async (uuids) => uuids.map(() => undefined),
}

/** Returns the role of a board without batches. Its list is refused, too: an empty one would read as if batches could be created. */
export function noBatches(uri: string): BackendBatches {
  const refuse = async (): Promise<never> => {
    throw new UnsupportedCapability(`board ${uri} does not support batches`, { capability: 'batches' })
  }
  return {
    ...{ create: refuse, find: refuse, list: refuse, change: refuse, jobs: refuse, watch: refuse },
    unwatch: async () => undefined,
  }
}

/** Returns the role of a backend whose callers have no transactions that could post. */
export function noCallerTransactions(uri: string): BackendCallerTransactions {
  return {
    post: async (_client, { posting }) => {
      const message = `job ${posting.uuid} (${posting.name}): ${uri} cannot post in a transaction of the caller; omit client`
      throw new UnsupportedCapability(message, { capability: 'client' })
    },
    stateOf: async () => 'unknown',
  }
}
