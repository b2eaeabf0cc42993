/** Resources that claims leave, and that other programs hold: there are none. */
import type { BackendResources } from '../../contract/index.ts'

export class RedisResources implements BackendResources {
  async freeOrphans(): Promise<void> {
    // Resources are held by the job: without its claim none is left.
  }

  async holder(): Promise<undefined> {
    // Other programs hold no resources of these boards.
  }
}
