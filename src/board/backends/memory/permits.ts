import { refusalError } from '../../contract/refusals.ts'
import type { Posting } from '../../model/posting.ts'
import { toResourceWants } from '../../model/resources.ts'

type ResourceRequest = Pick<Posting, 'resources'>

interface Holders {
  readonly mode: 'exclusive' | 'shared'
  readonly ids: Set<string>
}

export class Permits {
  readonly #held = new Map<string, Holders>()

  /** Acquires all resources of the posting, or none. @throws Unclaimable if another job holds one of them */
  acquire(id: string, posting: ResourceRequest): void {
    const { exclusive, shared } = toResourceWants(posting)
    const busy =
      exclusive.find((name) => this.#held.has(name)) ??
      shared.find((name) => this.#held.get(name)?.mode === 'exclusive')
    if (busy !== undefined) throw refusalError(id, { why: 'resource', resource: busy })
    for (const name of exclusive) this.#held.set(name, { mode: 'exclusive', ids: new Set([id]) })
    for (const name of shared) {
      const holders = this.#held.get(name) ?? { mode: 'shared', ids: new Set() }
      holders.ids.add(id)
      this.#held.set(name, holders)
    }
  }

  /** Releases all resources of the posting that the job holds. */
  release(id: string, posting: ResourceRequest): void {
    const { exclusive, shared } = toResourceWants(posting)
    for (const name of [...exclusive, ...shared]) {
      const holders = this.#held.get(name)
      if (holders?.ids.delete(id) && holders.ids.size === 0) this.#held.delete(name)
    }
  }
}
