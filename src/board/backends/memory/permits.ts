/** Who holds which resource: one job alone, or several together. */
import { Unclaimable } from '../../../core/errors.ts'
import type { Posting } from '../../model/posting.ts'
import { toResourceWants } from '../../model/resources.ts'

type ResourceRequest = Pick<Posting, 'resources'>

interface Holders {
  readonly mode: 'exclusive' | 'shared'
  readonly ids: Set<string>
}

export class Permits {
  readonly #held = new Map<string, Holders>()

  /** All of them, or none. @throws Unclaimable */
  acquire(id: string, posting: ResourceRequest): void {
    const { exclusive, shared } = toResourceWants(posting)
    const busy =
      exclusive.find((name) => this.#held.has(name)) ??
      shared.find((name) => this.#held.get(name)?.mode === 'exclusive')
    if (busy !== undefined) throw new Unclaimable(`${id}: another job holds resource ${busy}`)
    for (const name of exclusive) this.#held.set(name, { mode: 'exclusive', ids: new Set([id]) })
    for (const name of shared) {
      const holders = this.#held.get(name) ?? { mode: 'shared', ids: new Set() }
      holders.ids.add(id)
      this.#held.set(name, holders)
    }
  }

  release(id: string, posting: ResourceRequest): void {
    const { exclusive, shared } = toResourceWants(posting)
    for (const name of [...exclusive, ...shared]) {
      const holders = this.#held.get(name)
      if (holders?.ids.delete(id) && holders.ids.size === 0) this.#held.delete(name)
    }
  }
}
