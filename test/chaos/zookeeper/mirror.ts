/** A copy of what is in some folders, kept by a watch: listed once, then told; listed again after each gap. */
import type { WatchEvent, ZooKeeper } from '../../../src/zookeeper/index.ts'

export interface TreeSnapshot {
  /** Paths that are in one and not in the other, when everything that happened so far has been told. */
  differences(observer: ZooKeeper): Promise<Differences>
}

export interface Differences {
  readonly missing: readonly string[]
  readonly surplus: readonly string[]
  /** The events and states of the watch since the last listing. */
  readonly story: string
}

export async function watchTree(client: ZooKeeper, path: string, folders: readonly string[]): Promise<TreeSnapshot> {
  let copy = new Set<string>()
  let listing: Promise<unknown> = Promise.resolve()
  /** What became of the watch, for when something is missing. */
  let story: string[] = []

  const list = () => {
    const into = new Set<string>()
    copy = into
    story = ['listed']
    const one = async (folder: string) => {
      try {
        for (const name of (await client.getChildren(folder)).names) into.add(`${folder}/${name}`)
      } catch (error) {
        // Where the connection breaks meanwhile there will be another gap.
        story.push(`not listed: ${error}`)
      }
    }
    listing = Promise.all(folders.map(one))
  }
  client.on('state', ({ state, reason }) => story.push(`${state} ${reason ?? ''}`))
  const events = (batch: readonly WatchEvent[]) => {
    story.push(`${batch.length} events`)
    for (const event of batch) {
      if (event.type === 'created') copy.add(event.path)
      if (event.type === 'deleted') copy.delete(event.path)
    }
  }
  await client.watch(path, { mode: 'recursive' }, { events, gap: list })
  list()
  return {
    differences: async (observer) => {
      const real = new Set<string>()
      for (const folder of folders) {
        for (const name of (await observer.getChildren(folder)).names) real.add(`${folder}/${name}`)
      }
      await caughtUp(client, path)
      await listing
      for (const folder of folders) copy.delete(folder)
      const missing = [...real].filter((each) => !copy.has(each))
      const surplus = [...copy].filter((each) => !real.has(each))
      const states = story.filter((each) => !each.endsWith('events'))
      const sinceListing = `${story.slice(0, 10).join(', ')} … ${story.slice(-10).join(', ')}; but for events: ${states.join(', ')}`
      return { missing, surplus, story: sinceListing }
    },
  }
}

/**
 * Resolves when a write of this client is answered: every event before it has been reported then, and what was asked on a
 * connection that broke is either done by now or never will be. Until then it may be done late, when the servers have
 * agreed on a leader, say. A sync would not do: a former leader that does not know yet that there is another answers it.
 */
export async function caughtUp(client: ZooKeeper, path: string): Promise<void> {
  for (;;) {
    try {
      await client.setData(path, null)
      return
    } catch {
      // The end of the storm may still break a connection.
    }
  }
}
