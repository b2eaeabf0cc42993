/** The resources that the claims of a memory board hold. */
import type { BackendResources } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { toResourceWants } from '../../model/resources.ts'

type ResourceRequest = Pick<Posting, 'resources'>

interface Holders {
  readonly mode: 'exclusive' | 'shared'
  readonly ids: Set<string>
}

export class ResourceSteps {
  readonly #held = new Map<string, Holders>()

  /** @throws Unclaimable if another job holds a resource of the posting */
  requireFree(id: string, posting: ResourceRequest): void {
    const { exclusive, shared } = toResourceWants(posting)
    const busy =
      exclusive.find((name) => this.#held.has(name)) ??
      shared.find((name) => this.#held.get(name)?.mode === 'exclusive')
    if (busy !== undefined) throw refusalError(id, { why: 'resource', resource: busy })
  }

  /** Takes all resources of the posting for the job. */
  hold(id: string, posting: ResourceRequest): void {
    const { exclusive, shared } = toResourceWants(posting)
    for (const name of exclusive) this.#held.set(name, { mode: 'exclusive', ids: new Set([id]) })
    for (const name of shared) {
      const holders = this.#held.get(name) ?? { mode: 'shared', ids: new Set() }
      holders.ids.add(id)
      this.#held.set(name, holders)
    }
  }

  /** Frees all resources of the posting that the job holds. */
  free(id: string, posting: ResourceRequest): void {
    const { exclusive, shared } = toResourceWants(posting)
    for (const name of [...exclusive, ...shared]) {
      const holders = this.#held.get(name)
      if (holders?.ids.delete(id) && holders.ids.size === 0) this.#held.delete(name)
    }
  }
}

export class MemoryResources implements BackendResources {
  async freeOrphans(): Promise<void> {
    // Resources are held by the job: without its claim none is left.
  }

  async holder(): Promise<undefined> {
    // Other programs hold no resources of these boards.
  }
}
